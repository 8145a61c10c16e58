"""How a run asks: the queue of what is to be judged, its feeds, the ledger and the writer to the store."""

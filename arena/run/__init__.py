"""How a run asks: the queue of what is to be judged, the planner, the ledger and the writer to the store."""

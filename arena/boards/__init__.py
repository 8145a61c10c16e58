"""Results of a tournament as frozen values; each says in which tables and pictures it is shown."""

"""The offline demo's data: questions about the handbook and what five small agents really answered."""

"""`headrace demo`: from nothing to a trained model, the slow way and the fast way. Knows nothing of terminals."""

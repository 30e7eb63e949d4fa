"""`hopline verify --every`: vaults and index compared again and again, and what stands shown on /metrics."""

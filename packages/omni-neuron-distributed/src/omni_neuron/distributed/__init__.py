"""Which rank does what: layouts, groups, order-safe collectives, parallel layers, sharded weight loading."""

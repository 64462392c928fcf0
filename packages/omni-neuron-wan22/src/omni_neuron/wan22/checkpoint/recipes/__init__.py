"""How every file of a tiny checkpoint is made: shapes, random values, configurations, vocabulary."""

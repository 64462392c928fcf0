"""What a layout costs before it runs: arithmetic, bytes, memory and seconds, and the search over layouts."""

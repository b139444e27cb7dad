"""What capacity costs and where it can be had: price list, spot prices and scores, offerings of Capacity Blocks."""

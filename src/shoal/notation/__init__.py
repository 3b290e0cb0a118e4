"""How values and labels are written: numbers, ranges, sets, dates, and a code for each distinct text."""

"""Output checking: tables of counts, sums, means and quantiles, judged before they leave."""

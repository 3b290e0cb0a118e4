"""Output checking: tables of counts, sums, means, quantiles and regressions, judged before they leave."""

"""The report's pictures, drawn by Vega-Altair as SVG elements."""

"""The look of every page that Headrace writes: colours, type, charts as plain SVG. Knows nothing of runs or data."""

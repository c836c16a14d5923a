"""From labelled traces to a critic folder, one file a stage."""

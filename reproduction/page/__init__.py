"""The page: text, tables and figures from what the experiments found."""

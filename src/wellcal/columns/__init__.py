"""Columns of data frames and files: frames of any library, index labels, dates, texts, and names."""

"""Parts of the omnibus test: sums over cases, each made for one kind of error."""

"""Cases beyond one machine, or beyond its memory: Dask arrays, data frames, and folders of Parquet files.

The functions of wellcal take what Dask has, and compute where the partitions are. This room is loaded when
such an object is met; it needs the extra ``dask``.
"""

from __future__ import annotations

from wellcal.dask.building import from_arrays
from wellcal.dask.costs import Effort, effort
from wellcal.dask.functions import __wellcal_function__ as __wellcal_function__
from wellcal.dask.parquet import read_parquet
from wellcal.dask.partitioned import Partitioned, sample_cases

__all__ = ["Effort", "Partitioned", "effort", "from_arrays", "read_parquet", "sample_cases"]

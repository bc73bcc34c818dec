"""The bank: how much `auto` finds of many kinds of error, beside tests that a specialist would choose.

- `designs`: calibrated models, one for each kind of prediction; type I errors are theirs;
- `scalars`, `counts`, `classes`, `vectors`, `ensembles`: errors, each a law of targets given predictions;
- `fresh`: errors of all kinds that no weight was chosen on;
- `errors`, `alternatives`: what an error is, and all of them by name, with their sizes and halves;
- `seen`, `rivals`, `levels`: the tests beside `auto`, and the null distributions that give them their level;
- `record`, `store`, `run`: data sets, p-values and statistics of parts, stored;
- `table`: what comes of it;
- `versus`: two runs side by side.

``python -m benchmarks.bank --help`` says how to run it. It needs what the library itself needs, and no more.
"""

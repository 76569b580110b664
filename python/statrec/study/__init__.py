"""`statrec study`: grids of runs, their archives, and tables of them that obey one rule.

experiment.py reads what is to be run, running.py runs it (child.py: one program), archive.py keeps it, settings.py the settings of each run; rule.py is the rule,
documents.py writes the tables. It needs no other package. docs/studies.md is a guide.

An experiment is a file NAME.conf: options as `statrec train -c` reads them, and lines that only a study reads:

    #: minutes = 0.25                 of one run, on one core; without it as long as the runs before it took
    #: seed = 1 2 3                   one run for each combination of these values,
    #: norm = ln bn                   the first line changing most slowly
    #: max-tokens+update-freq = 256+8 2048+1    options that change together
    #: norm-at = all:*=bn first:stem=bn,*=ln    what a value is called, where it makes no name
    #: after last5 = average RUN-0*.ckpt -o RUN-5.ckpt; evaluate RUN-5.ckpt
    #: archive = after                only this goes into the archive: the run file is too large
    #: program = python3 train.py --out RUN.h5             another program than statrec train makes the runs
    #: resume = python3 train.py --out RUN.h5 --resume     and resumes one; without it they begin again
    #: report = verdict=NAME of=norm against=ln value=valid_loss      a block that `report` prints without a page

The run with seed 1, ln and 256 is OUT/NAME-1-ln-256.h5. One that is complete, or diverged, is not
repeated; one that was stopped is resumed from its newest checkpoint. yes and no are values of switches.
A + too many belongs to the first of the values. The runs of all experiments in a directory have different names.
Another program gets the options behind its words, as --OPTION VALUE (--OPTION
and --no-OPTION for yes and no), but those that its words name as {OPTION}. It must write RUN.h5, which statrec.watch, statrec.Recorder
and libstatrec do, and end with status 0: until it has, there is OUT/NAME.unended, and the run is not done. After a run that is complete: statrec with these words, or the
program stat-NAME that they begin with, where RUN is OUT/NAME-1-ln-256; what the last command prints is
OUT/NAME-1-ln-256-last5.tsv.

Runs that are done, and what came after them, stay in runs/NAME.tar.xz beside NAME.conf, with the settings of
NAME.conf, so that tables can be made without running anything: what is there is unpacked into OUT first, over
what OUT has, and counts as done. To repeat an experiment, or run it with other settings, remove its archive and its
runs. OUT/NAME-1-ln-256.settings are the settings that the run was begun with: a run with others is an error. A line
`after` that is new is made of the archived run files. An archive loses no run: a value that has some cannot be removed
from NAME.conf.

A table in the document is between two lines, which stay:

    <!-- study: NAME rows=norm columns=max-tokens value=best_valid_loss -->
    <!-- study: end -->

value: a column of stat-table, or of by="stat-distance --site first --stat sigma2", a table with one line
a run; several with commas without columns=. The mean over labels in neither rows nor columns (seeds), with its 95 %
interval by Student's t. digits=N after the point (3). norm=ln,bn: only these. against=ln: differences from the run
whose rows= is ln and that is like it otherwise, seed too. A cell with fewer runs than others shows their number.
head=WORD: above the labels of rows=. Tables without any run stay unchanged, and are named. Several experiments make
one table: rows=experiment. by=after: what came after the runs, value= being a name of `statrec evaluate`, NAME@SITE,
or a column of an analysis that printed one line; `after` is an option then, its labels the values.

Further blocks: a figure, drawn into the document's directory; lines of an analysis of DIR/*.h5 (--samples DIR) or of
experiments, with digits=N significant digits, columns= being a column that makes columns, or lines=NAME after=LABEL:
those that came after its runs; what papers print, from --published FILE, tables beside one another.

    <!-- study: figure=NAME.svg by="statplot tidgap --metric valid_accuracy" task-rt task-sst5 norm=ln,bn -->
    <!-- study: figure=NAME.svg by="statplot gap" gap-translation after=evals alt="..." -->
    <!-- study: figure=NAME.png by="statplot fair" samples/cv_bn samples/nlp_bn alt="Text for who cannot see it" -->
    <!-- study: samples=nlp_bn,nlp_pnv rows=site,norm value=median,q99 by="stat-distance --site first" -->
    <!-- study: lines=running-text rows=run,alpha columns=kept_in value=median by="stat-alpha --running-dtype double,bf16" -->
    <!-- study: published=an-rt,an-sst5 metric=accuracy norm=ln,ln-simple,adanorm -->

after=LABEL of a figure: runs whose files were not kept are drawn from their evaluations, `#: after LABEL = stat-curve RUN.h5 --evals`.

Blocks that judge (verdicts.py), and the claims of claims.conf, beside the experiments, with their verdicts (claims.py), all of
them or one. of= is the option that is compared with the label against=; there is a row for each combination of the other
labels but the seed. The rule is in rule.py:

    <!-- study: verdict=mask of=norm against=ln value=valid_loss norm=bn claim=higher -->
    <!-- study: verdict=microbatch of=norm against=ln value=valid_loss less=max-tokens:2048 -->
    <!-- study: verdict=task-rt of=norm against=ln value=valid_accuracy within=0.1 -->
    <!-- study: verdict=mask of=norm against=ln value=decay by="stat-svd --summary" pick=last -->
    <!-- study: paired=layer-scale,averaging of=norm against=ln value=valid_loss norm=bn since=240 -->
    <!-- study: bound=samples/nlp_pn by=stat-gamma rows=site value=max limit=1 claim=below -->
    <!-- study: order=conditions by="stat-distance --stat sigma2,psi2" across=statistic of=dist_psi2 against=dist_sigma2 value=median claim=lower -->
    <!-- study: claims -->
    <!-- study: claim=micro-batches -->

    <!-- study: split=gap-translation,gap-tags of=norm against=ln -->
    <!-- study: opening=docs/why-bn-loses.md sentences=3 -->

within=X: the change that counts as none, 0.01 of metrics whose declared unit is nats.
value=A-B is a difference of two metrics of a run; of value=A,B a row has the first that all its runs have. by="after LABEL" takes a number of what came after the runs. split= is a table of the
parts of a difference in validation loss (split.py); opening= quotes the first sentences of a page. samples= and lines= take
COLUMN=TEXT,... for lines with these texts alone.
"""

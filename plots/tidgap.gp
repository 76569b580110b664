#: title discrepancy of the last site against the validation loss gap to the first run (Regularized BN)
#: runs 2- REFERENCE.h5 BN.h5 [MORE.h5...]
#: samples nlp_ln nlp_bn nlp_bn_256
#: size 3.25 2.6
#: table t stat-table {runs}
# One point per run: variance TID of its last site (mean over the last tenth of the steps, percent) against its
# last validation loss less that of the first run, which is the reference (LN in the paper) and has no point.
# Comparable are runs of one task; the paper's points are tasks with another metric each.

legend_count = runs - 1
do for [r=2:runs] {
    legend_text[r-1] = run_label[r]
    legend_type[r-1] = r - 1
}
eval LEGEND_ROOM
pad_left = 0.72
stats t using (column(0) == 0 ? column(t_valid_loss) : NaN) nooutput name 'REFERENCE'
stats t using (column(0) > 0 ? column(t_valid_loss) - REFERENCE_min : NaN) nooutput name 'GAP'
stats t using (column(0) > 0 ? column(t_tid_var) : NaN) nooutput name 'TID'
set xlabel 'variance TID of the last site (%)' offset 0,0.7
set ylabel 'gap in validation loss (nats)' offset 1,0
set xrange [0:TID_max * 1.15] noextend
set pointsize 0.7
set xzeroaxis linetype 8 linewidth 0.5

set multiplot
eval panel(1, 1, 1, 1)
eval linear_y(GAP_min < 0 ? GAP_min : 0, GAP_max > 0 ? GAP_max : 0)
plot for [r=2:runs] t using (column(0) == r-1 ? column(t_tid_var) : NaN):(column(t_valid_loss) - REFERENCE_min) with points linetype r-1
unset xzeroaxis
eval LEGEND_DRAW
unset multiplot

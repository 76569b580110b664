#: title Regularized BN: discrepancy of the last BN layer and loss gap through training
#: question compare
#: runs 1- RUN.h5 [MORE.h5...]
#: samples nlp_bn figures/rbn_1
#: size 3.25 3.4
#: tasks one
#: controls x smooth
#: site last-bn
#: stat tid_var
#: table d stat-tid {run} --per-step --buckets {buckets} --site {site} --stat {stat}
#: curves d by site x percent y {stat} buckets 50
#: table? v stat-curve {run} --evals --metric valid_loss,valid_loss_batch
#: curves v x percent y valid_loss,valid_loss_batch
# Above: TID (--stat tid_mean, tid_var or tid_total) of the last BN layer, median and range of each 1/50 of training.
# Below: what the discrepancy costs, the validation loss in running statistics minus that in the statistics of each
# validation batch (statrec train --validate-batch); below 0 the running statistics do better. The site is named in the panel.

if (v_valid_loss_batch_finite == 0) { eval refuse('no evaluation has a finite valid_loss_batch; statrec train --validate-batch measures it') }
legend_count = runs
do for [r=1:runs] {
    legend_text[r] = run_label[r]
    legend_type[r] = r
}
eval BURN_IN_NOTE
eval LEGEND_ROOM
legend_height = legend_height + 0.1
pad_left = 0.72
gap_y = 0.24
# One name, or as many as there are.
layer = d_key[1]
do for [k=1:d_curves] { if (!(d_key[k] eq layer)) { layer = 'last BN layer' } }
gap(i) = column(v_valid_loss) - column(v_valid_loss_batch)
low = 0.0
high = 0.0
do for [k=1:v_curves] {
    eval span_of(sprintf('v index %d', k - 1), 'v_valid_loss_batch', 'gap(0)')
    if (span_count > 0) {
        low = span_low < low ? span_low : low
        high = span_high > high ? span_high : high
    }
}
eval WIDE_TICS(abs_high(low, high), 0)
eval percent_x(25)
band = d_curves > 3 ? 0.15 : 0.28
set pointsize 0.4

set multiplot
eval panel(1, 1, 1, 2)
eval log_y(100 * d_y1_positive, 100 * d_y1_largest)
eval STARTUP('burn-in')
set format x ''
set ylabel stat_name(stat).' (%)' noenhanced offset 0.4,0
set label 1 layer at graph 1, graph 1.06 right noenhanced font ',7' textcolor rgb '#606060'
plot for [k=1:d_curves] d index k-1 using d_x:(100 * column(d_y1_low)):(100 * column(d_y1_high)) \
         with filledcurves linetype d_run[k] fillstyle transparent solid band noborder, \
     for [k=1:d_curves] d index k-1 using d_x:(100 * column(d_y1)) with lines linetype d_run[k]
eval panel(1, 1, 2, 2)
eval NO_STARTUP
eval linear_y(low, high)
set format x '%g'
set xlabel 'training (%)' offset 0,0.7
set ylabel 'loss gap'.valid_unit noenhanced offset 0.4,0
set label 1 'validation: running − batch statistics' at graph 1, graph 1.06 right font ',7' textcolor rgb '#606060'
set xzeroaxis linetype 958 linewidth 0.5
plot for [k=1:v_curves] v index k-1 using v_x:(gap(0)) with linespoints linetype v_run[k]
unset xzeroaxis
unset label
eval LEGEND_DRAW
unset multiplot

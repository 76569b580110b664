#: title AdaNorm figures 1-3: convergence of LN variants, training and validation loss after the first tenth of training
#: question papers
#: runs 2-8 LN.h5 OTHER.h5 [MORE.h5...]
#: samples nlp_ln nlp_adanorm nlp_detach_mean
#: size 6.75 2.4
#: tasks one
#: controls x scale smooth steps
#: table t stat-curve {run} --buckets {buckets} --phase {steps}
#: curves t x epoch y loss buckets 40
#: table? v stat-curve {run} --evals --phase {steps} --metric valid_loss
#: curves v x epoch y valid_loss
# The paper's pairs: LN and LN-simple (figure 1), LN-simple and DetachNorm (2), LN and AdaNorm (3). Training loss:
# median of each 1/40 of training, without the range that `curves` draws, and without the first tenth, where the
# curves fall steeply and lie upon each other; --steps FROM:TO chooses other steps. Validation loss in running statistics; at the right, what each run has
# more than the first run at the same evaluation.

legend_count = runs
do for [r=1:runs] {
    legend_text[r] = run_label[r]
    legend_type[r] = r
    legend_mark[r] = 2
}
eval LEGEND_ROOM
pad_left = 0.68
stats t using t_x nooutput name 'EPOCH'
from = steps eq 'all' ? EPOCH_min + 0.1 * (EPOCH_max - EPOCH_min) : EPOCH_min
late(c) = $1 >= from ? column(c) : NaN
set xlabel t_over offset 0,0.7
if (v_valid_loss_finite > 0) {
    stats v using v_x nooutput name 'EVAL'
    EPOCH_max = EVAL_max > EPOCH_max ? EVAL_max : EPOCH_max
}
set pointsize 0.4
panels = v_valid_loss_finite > 0 ? 3 : 1
gap_x = 0.66

# The first run's evaluations, to be taken from those of the others at the same place.
array first_x[panels == 3 ? v_rows : 1]
array first_y[panels == 3 ? v_rows : 1]
if (panels == 3) {
    do for [i=1:v_rows] { first_x[i] = NaN; first_y[i] = NaN }
    if (v_run[1] == 1) { stats v index 0 using (first_x[int(column(0))+1] = $1, first_y[int(column(0))+1] = finite(strcol(v_valid_loss)) ? column(v_valid_loss) : NaN, 1) nooutput name 'FIRST' }
    eval span_of('v', 'v_valid_loss', 'late(v_valid_loss)')
    valid_low = span_low
    valid_high = span_high
    if (span_count == 0) { panels = 1 }
}
more(c) = abs($1 - first_x[int(column(0))+1]) < 1e-6 * EPOCH_max ? late(c) - first_y[int(column(0))+1] : NaN
array differs[panels == 3 ? v_curves : 1]
if (panels == 3) {
    low = 0.0
    high = 0.0
    others = 0
    do for [k=1:v_curves] {
        eval span_of(sprintf('v index %d', k - 1), 'v_valid_loss', 'more(v_valid_loss)')
        differs[k] = span_count
        others = others + (k > 1 && span_count > 0)
        if (span_count > 0) {
            low = span_low < low ? span_low : low
            high = span_high > high ? span_high : high
        }
    }
    if (others == 0) { panels = 2 }
}
eval span_of('t', 't_loss', 'late(t_loss)')
if (span_count == 0) { eval refuse('no finite loss '.(steps eq 'all' ? 'after the first tenth of training' : 'in these steps')) }
eval x_axis(from, EPOCH_max + 0.02 * (EPOCH_max - from), tic_step(EPOCH_max > from ? EPOCH_max - from : 1, 6))

eval WIDE_TICS(abs_high(span_low, span_high), panels > 1 ? abs_high(valid_low, valid_high) : 0)
eval SIDE_BY_SIDE(panels)
set multiplot
eval panel(1, panels, 1, 1)
eval linear_y(span_low, span_high)
set ylabel 'training loss'.train_unit offset 0.2,0
plot for [k=1:t_curves] t index k-1 using t_x:(late(t_loss)) with lines linetype t_run[k]
if (panels > 1) {
    eval panel(2, panels, 1, 1)
    eval linear_y(valid_low, valid_high)
    set ylabel 'validation loss'.enhanced_safe(valid_unit) offset 0.2,0
    plot for [k=1:v_curves] v index k-1 using v_x:(late(v_valid_loss)) with linespoints linetype v_run[k]
}
if (panels == 3) {
    eval panel(3, panels, 1, 1)
    eval linear_y(low, high)
    set ylabel 'more than the first'.enhanced_safe(valid_unit) offset 0.2,0
    command = ''
    do for [k=1:v_curves] {
        if (differs[k] > 0) { command = command.sprintf(', v index %d using v_x:(more(v_valid_loss)) with linespoints linetype %d', k - 1, v_run[k]) }
    }
    eval 'plot '.command[3:*]
}
eval LEGEND_DRAW
unset multiplot

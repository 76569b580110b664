#: title training-inference discrepancy of every site through training (Regularized BN)
#: question running
#: runs 1 RUN.h5
#: samples cv_bn
#: size 6.75 2.5
#: controls x y scale smooth steps
#: table d stat-tid {run} --per-step --buckets {buckets} --phase {steps}
#: curves d by site x percent y tid_mean,tid_var buckets 25
# One line per site: median of each 1/25 of training, dark for the first site, light for the last.
legend_count = 0
legend_height = 0.1
observed = strstrt(run_full[1], '(observed)') > 0 ? ', observed' : ''
pad_right = 1.05
eval span('d', 'd_tid_mean')
mean_low = span_count > 0 ? 100 * span_low : 0
mean_high = span_count > 0 ? 100 * span_high : 1
eval span('d', 'd_tid_var')
var_low = span_count > 0 ? 100 * span_low : 0
var_high = span_count > 0 ? 100 * span_high : 1
set xlabel 'training (%)' offset 0,0.7
eval percent_x(25)
set palette defined (0 '#0D0887', 0.25 '#7E03A8', 0.5 '#CC4778', 0.75 '#F89540', 1 '#E8D020')
set cbrange [1:(d_curves > 1 ? d_curves : 2)]
unset colorbox

eval SIDE_BY_SIDE(2)
set multiplot
eval panel(1, 2, 1, 1)
eval log_y(mean_low > 0 ? mean_low : 100 * d_tid_mean_positive, mean_high)
eval STARTUP('burn-in')
set ylabel 'mean TID (%)'.observed offset 0.3,0
plot for [k=1:d_curves] d index k-1 using d_x:(100 * column(d_tid_mean)):(k) with lines linecolor palette linewidth 0.8 dashtype solid
eval panel(2, 2, 1, 1)
eval log_y(var_low > 0 ? var_low : 100 * d_tid_var_positive, var_high)
eval STARTUP('')
set ylabel 'variance TID (%)'.observed offset 0.3,0
do for [k=1:d_curves] {
    if (k == 1 || k == d_curves || (d_curves > 4 && k == int((d_curves + 1) / 2))) {
        set label k d_key[k] noenhanced font ',7' textcolor palette cb k left \
            at screen (1 - 0.98 / figure_width), graph (d_curves > 1 ? 0.92 - 0.84 * (k - 1) / (d_curves - 1) : 0.5)
    }
}
plot for [k=1:d_curves] d index k-1 using d_x:(100 * column(d_tid_var)):(k) with lines linecolor palette linewidth 0.8 dashtype solid
eval LEGEND_DRAW
unset multiplot

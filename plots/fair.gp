#: title discrepancies and gradient parts side by side, without width, scale and loss
#: question compare
#: runs 1- VISION.h5 TEXT.h5 [MORE.h5...]
#: samples cv_bn nlp_bn
#: size 6.75 3.8
#: controls x scale smooth steps
#: choice against scale|rows relative to the running deviation and the whole gradient, or to what as many independent rows would give
#: word mean against dist_mu_relative|dist_mu_excess
#: word var against dist_sigma_relative|dist_sigma_excess
#: word gmu against g_mu_share|g_mu_excess
#: word gsigma2 against g_sigma2_share|g_sigma2_excess
#: table f stat-scalar {run} --site first --per-step --buckets {buckets} --phase {steps} --stat {mean},{var},{gmu},{gsigma2}
#: curves f by site x percent y {mean},{var},{gmu},{gsigma2} buckets 50
#: table l stat-scalar {run} --site last-bn --per-step --buckets {buckets} --phase {steps} --stat {mean},{var},{gmu},{gsigma2}
#: curves l by site x percent y {mean},{var},{gmu},{gsigma2} buckets 50
# Above: first BN site; below: last BN layer (last-bn). From left to right: mean and variance TID, parts of dx through
# mu_B and sigma2_B. Line: median of each 1/50 of training; band: smallest to largest value; grey: burn-in.
# --against rows divides by what batches of as many independent rows would show. No form is free of the number of rows.

if (value('f_'.gmu.'_finite') == 0) { eval refuse('no run has ||dx||: it is missing in files of older versions, for merged passes, and where a program put vectors without it') }
legend_count = runs
do for [r=1:runs] {
    legend_text[r] = run_label[r]
    legend_type[r] = r
}
band = runs > 3 ? 0.12 : 0.24
eval BURN_IN_ENTRY
eval BURN_IN_NOTE
eval LEGEND_ROOM
pad_left = 0.66
gap_x = 0.5
gap_y = 0.3
legend_height = legend_height + 0.22
eval GRID(4, 2)
low(a, b) = a < b ? a : b
high(a, b) = a > b ? a : b
array head[4] = ['mean TID', 'variance TID', 'fraction of {/:Italic dx}: {/:Italic g_μ}', 'fraction of {/:Italic dx}: {/:Italic g}_{{/:Italic σ}^2}']
if (against eq 'rows') {
    head[1] = 'mean TID / noise'
    head[2] = 'variance TID / noise'
    head[3] = '{/:Italic g_μ} / noise'
    head[4] = '{/:Italic g}_{{/:Italic σ}^2} / noise'
}
eval percent_x(50)
set title font ',7' offset 0,-0.75
# One panel: only numbers get into the command.
curves(t, count, i) = sprintf('plot for [k=1:%d] %s index k-1 using 1:%d:%d with filledcurves linetype %s_run[k] fillstyle transparent solid band noborder, '. \
    'for [k=1:%d] %s index k-1 using 1:%d with lines linetype %s_run[k]', count, t, 3*i-1, 3*i+1, t, count, t, 3*i, t)
array positive[4] = [low(f_y1_positive, l_y1_positive), low(f_y2_positive, l_y2_positive), low(f_y3_positive, l_y3_positive), low(f_y4_positive, l_y4_positive)]
array largest[4] = [high(f_y1_largest, l_y1_largest), high(f_y2_largest, l_y2_largest), high(f_y3_largest, l_y3_largest), high(f_y4_largest, l_y4_largest)]

set multiplot
do for [i=1:4] {
    do for [r=1:2] {
        eval panel(i, 4, r, 2)
        eval log_y(positive[i], largest[i])
        unset arrow
        eval NO_STARTUP
        if (i <= 2) { eval STARTUP('') }
        unset title
        if (r == 1) { set title head[i] }
        unset xlabel
        if (r == 2) { set xlabel 'training (%)' offset 0,0.7 }
        set format x (r == 2 ? '%g' : '')
        unset ylabel
        if (begins_row(i, 4)) { set ylabel (r == 1 ? 'first BN site' : 'last BN layer') offset 0.8,0 }
        if (against eq 'rows') { set arrow from graph 0, first 1 to graph 1, first 1 nohead linecolor rgb '#404040' linewidth 0.5 dashtype (2,3) }
        eval curves(r == 1 ? 'f' : 'l', r == 1 ? f_curves : l_curves, i)
    }
}
unset format
eval LEGEND_DRAW
unset multiplot

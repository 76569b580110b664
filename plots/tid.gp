#: title training-inference discrepancy of every site through training (Regularized BN)
#: question running
#: runs 1 RUN.h5
#: samples cv_bn
#: size 6.75 2.5
#: controls x y scale smooth steps
#: table d stat-tid {run} --per-step --buckets {buckets} --phase {steps}
#: curves d by site x percent y tid_mean,tid_var buckets 25
# One line per site: median of each 1/25 of training. Up to eight sites are in the legend; of more the first, the middle and the last,
# and a bar tells the colours: by depth, dark for the first site, light for the last.
few = d_curves <= 8
observed = strstrt(run_full[1], '(observed)') > 0 ? ', observed' : ''
array tone_of[3] = ['#0D0887', '#CC4778', '#E8D020']
do for [n=1:3] { eval sprintf("set linetype %d lc rgb '%s' lw 0.9 dt solid", 960 + n, tone_of[n]) }
do for [n=1:(few ? d_curves : 3)] {
    legend_count = legend_count + 1
    k = few ? n : n == 1 ? 1 : n == 2 ? int((d_curves + 1) / 2) : d_curves
    legend_text[n] = d_key[k].(d_observed[k] && observed eq '' ? ' (observed)' : '')
    legend_type[n] = few ? 950 + n : 960 + n
}
eval LEGEND_ROOM
eval span('d', 'd_tid_mean')
mean_low = span_count > 0 ? 100 * span_low : 0
mean_high = span_count > 0 ? 100 * span_high : 1
eval span('d', 'd_tid_var')
var_low = span_count > 0 ? 100 * span_low : 0
var_high = span_count > 0 ? 100 * span_high : 1
set xlabel 'training (%)' offset 0,0.7
eval percent_x(25)
set palette defined (0 '#0D0887', 0.25 '#7E03A8', 0.5 '#CC4778', 0.75 '#F89540', 1 '#E8D020')
set cbrange [d_depth[1]:(d_curves > 1 ? d_depth[d_curves] : d_depth[1] + 1)]
unset colorbox
# Draws the curves of column c.
LINES = 'if (few) { plot for [k=1:d_curves] d index k-1 using d_x:(100 * column(c)) with lines linetype 950 + k } else { '. \
    'plot for [k=1:d_curves] d index k-1 using d_x:(100 * column(c)):(d_depth[k]) with lines linecolor palette linewidth 0.8 dashtype solid }'
if (!few) { pad_right = 0.85 }
eval SIDE_BY_SIDE(2)
bars = stacked ? 2 : 1
if (!few) {
    set colorbox user origin screen (1 - 0.72 / figure_width), screen (panel_bottom(bars, bars) / figure_height) \
        size screen (0.08 / figure_width), screen (panel_height(bars) / figure_height) noborder
    set cbtics scale 0 font ',7' offset -0.8,0 (sprintf('depth %d', d_depth[1]) d_depth[1], sprintf('depth %d', d_depth[d_curves]) d_depth[d_curves])
}
set multiplot
eval panel(1, 2, 1, 1)
eval log_y(mean_low > 0 ? mean_low : 100 * d_tid_mean_positive, mean_high)
eval STARTUP('burn-in')
set ylabel 'mean TID (%)'.observed offset 0.3,0
c = d_tid_mean
eval LINES
unset colorbox
eval panel(2, 2, 1, 1)
eval log_y(var_low > 0 ? var_low : 100 * d_tid_var_positive, var_high)
eval STARTUP('')
set ylabel 'variance TID (%)'.observed offset 0.3,0
c = d_tid_var
eval LINES
eval LEGEND_DRAW
unset multiplot

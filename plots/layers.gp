#: title one statistic at every site through training: depth against time
#: question running
#: runs 1 RUN.h5
#: samples cv_bn
#: size 6.75 3.2
#: controls x y scale smooth steps
#: site *
#: stat tid_var
#: table d stat-scalar {run} --per-step --buckets {buckets} --phase {steps} --site {site} --stat {stat}
#: curves d by site x percent y {stat} buckets 50 gaps kept
# Left or above: median of each 1/50 of training; right or below: largest value, so no outlier is lost. One colour scale.
# --stat NAME draws any recorded scalar, also one that the run declares, --site GLOB some of the sites. Sites from top to bottom in the
# order of the forward pass.

array name[d_curves]
longest = 1
do for [k=1:d_curves] {
    name[k] = d_key[k]
    if (strlen(name[k]) > longest) { longest = strlen(name[k]) }
}
every_name = int((d_curves - 1) / 24) + 1
pad_left = 0.2 + 0.058 * longest
pad_right = 0.75
gap_x = 0.32
gap_y = 0.3
narrowest = 1.3
legend_height = 0.28
eval SIDE_BY_SIDE(2)
observed = strstrt(run_full[1], '(observed)') > 0 ? ' (observed)' : ''

# A number that the runs declare may have any sign: colours are linear then.
signed = stat_own && d_y1_least <= 0 && figure_scale ne 'log'
if (signed) { figure_scale = 'linear' }
eval span_of('d', 'd_y1', signed ? 'column(d_y1)' : '(column(d_y1) > 0 ? column(d_y1) : NaN)')
if (span_count == 0) { eval refuse('--stat '.stat.' has no value above 0 here') }
eval signed && d_y1_least < 0 ? signed_cb(d_y1_least, d_y1_largest) : signed ? linear_cb(d_y1_least, d_y1_largest) : log_cb(span_low, d_y1_largest)
set xlabel 'training (%)' offset 0,0.7
eval percent_x(percent_tics(2))
unset grid
set ytics scale 0 font ',7' (tic_text(name[1]) 1)
do for [k=1:d_curves:every_name] { set ytics add (tic_text(name[k]) k) }
set ytics noenhanced
set border 15
set title noenhanced offset 0,-0.6

bars = stacked ? 2 : 1
set multiplot
eval panel(1, 2, 1, 1)
unset colorbox
if (stacked) { unset xlabel; set format x '' }
set title stat_name(stat).observed.': median'
eval heat_map(d, d_y1, d_curves, d_rows)
eval panel(2, 2, 1, 1)
set colorbox user origin screen (1 - 0.65 / figure_width), screen (panel_bottom(bars, bars) / figure_height) \
    size screen (0.1 / figure_width), screen ((panel_bottom(1, bars) + panel_height(bars) - panel_bottom(bars, bars)) / figure_height) noborder
if (stacked) { set xlabel 'training (%)' offset 0,0.7; set format x '%g' } else { unset ytics }
set title stat_name(stat).observed.': largest'
eval heat_map(d, d_y1_high, d_curves, d_rows)
eval LEGEND_DRAW
unset multiplot

#: title outlier steps: excess of the arithmetic over the geometric mean of a batch statistic (Unified Normalization)
#: question running
#: runs 1- RUN.h5 [MORE.h5...]
#: samples cv_bn_every nlp_bn_bucketed
#: size 6.75 2.3
#: controls x y scale steps
#: site *
#: stat psi2_B
#: table d stat-amgm {run} --site {site} --stat {stat} --per-step --phase {steps}
#: curves d by site x percent y excess,infinite buckets 100
#: table s stat-amgm {run} --site {site} --stat {stat} --phase {steps}
# A panel per run, a line per site: the largest excess (AM - GM)/(M V) of each 1/100 of training, an outlier above 1. Where it is
# infinite there is a triangle at the upper edge. Last panel, where there are outliers: their share of the tested steps, by depth of
# the site. Of a run without vectors at every step the panel says how far the tested steps are apart. --stat psi2_B or
# sigma2_B.

eval span('d', 'd_excess_high')
if (span_count == 0) { eval refuse('no tested step has a finite excess of '.stat) }
excess_high = span_high > 1 ? span_high : 1
eval span_of('d', 'd_excess_high', '(column(d_excess_high) > 0 ? column(d_excess_high) : NaN)')
excess_low = span_count > 0 && span_low < 1 ? span_low : 1
array none_text[runs]
infinite_steps = 0
tested_steps = 0
do for [r=1:runs] {
    block = sprintf('s index %d', r - 1)
    eval span_of(block, 's_steps', '(tested_steps = tested_steps + column(s_steps), infinite_steps = infinite_steps + column(s_infinite), 1)')
    eval span(block, 's_share')
    outliers = span_count > 0 && span_high > 0
    eval span(block, 's_steps')
    none_text[r] = span_count > 0 && !outliers ? sprintf('no outlier in %d steps', span_high) : ''
    eval span(block, 's_spacing')
    if (span_count > 0 && span_high > 1) { run_below[r] = sprintf('vectors every %.3g steps', span_high) }
}
eval span('s', 's_share')
shares_high = span_count > 0 ? 100 * span_high : 0

y_top = y_given ? y_to : user_scale('log') eq 'log' ? excess_high * 1.15 : excess_high + room(excess_low, excess_high)
set linetype 990 linecolor rgb '#202020' linewidth 0.7 dashtype (6,3)
set linetype 991 linecolor rgb '#202020' pointtype 9
eval SITE_LOOKS
legend_count = legend_count + 1
legend_text[legend_count] = 'above this line: outlier (M = 4)'
legend_type[legend_count] = 990
if (infinite_steps > 0) {
    legend_count = legend_count + 1
    legend_text[legend_count] = sprintf('infinite (V = 0): %d of %d tested steps', infinite_steps, tested_steps)
    legend_type[legend_count] = 991
    legend_mark[legend_count] = 1
}
if (runs > 1 && shares_high > 0) {
    do for [r=1:runs] {
        legend_text[legend_count + r] = (r == 1 ? 'last panel: ' : '').run_label[r]
        legend_type[legend_count + r] = r
        legend_mark[legend_count + r] = 2
    }
    legend_count = legend_count + runs
}
eval LEFT_OUT('s')
eval LEGEND_ROOM
pad_left = 0.68
pad_right = sites_named ? 0.16 : 0.85
gap_x = 0.72
cells = runs + (shares_high > 0)
eval RUN_PANELS
set pointsize 0.3
# Lines of few points have marks: a single one would not be seen.
array kind[d_curves]
do for [k=1:d_curves] {
    eval span(sprintf('d index %d', k - 1), 'd_excess_high')
    kind[k] = span_count <= 12 ? 'linespoints' : 'lines'
}
eval span('s', 's_depth')
shallowest = span_low
deepest = span_high
infinite_at(c) = column(c) > 0 ? y_top : NaN

set multiplot
do for [r=1:runs] {
    eval cell_panel(r)
    eval percent_x(25)
    eval log_y(excess_low, excess_high)
    set title run_title(r)
    set xlabel (r + cell_columns > cells ? 'training (%)' : '') offset 0,0.7
    set ylabel (cell_column(r) == 1 ? 'largest (AM − GM) / (M V)' : '') offset 0.2,0
    if (r == 1 && !sites_named) { eval SITE_COLOURS }
    command = NO_PLOT
    do for [k=1:d_curves] {
        if (d_run[k] == r) {
            command = command.site_plot(k, 'd_x', 'd_excess_high', kind[k])
            if (infinite_steps > 0) { command = command.sprintf(', d index %d using d_x:(infinite_at(d_infinite_high)) with points linetype 991', k - 1) }
        }
    }
    set label 97 none_text[r] at graph 0.97, first 1 right offset 0,-0.6 font ',7' textcolor rgb '#404040' noenhanced front
    eval 'plot '.command.', 1 with lines linetype 990'
    unset colorbox
}
unset label 97
if (shares_high > 0) {
    eval cell_panel(cells)
    unset title
    set xlabel 'depth of the site, from the input' offset 0,0.7
    set ylabel 'outliers (% of steps)' offset 0.4,0
    set xrange [shallowest - 0.5:deepest + 0.5] noextend
    eval depth_tics(deepest - shallowest, 8)
    eval linear_axis(0, 1.06 * shares_high, '%%h')
    set pointsize 0.45
    shares = 'using s_depth:(100 * column(s_share))'
    command = NO_PLOT
    if (sites_named) {
        command = command.', s '.shares.' with lines linetype 958 dashtype solid'
        do for [k=1:d_curves] { command = command.sprintf(', s using (strcol(s_site) eq in_data(d_key[%d]) ? column(s_depth) : NaN):(100 * column(s_share)) with points linetype %d', k, 950 + k) }
    } else {
        do for [r=1:runs] { command = command.sprintf(', s index %d %s with linespoints linetype %d', r - 1, shares, r) }
    }
    eval 'plot '.command
}
eval LEGEND_DRAW
unset multiplot

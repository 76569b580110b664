#: title outlier features: kurtosis over the features of every site's input through training (He et al. 2024)
#: question features
#: runs 1- RUN.h5 [MORE.h5...]
#: samples cv_bn_every figures/bn_features
#: size 6.75 2.3
#: controls x y scale smooth steps
#: site *
#: choice quantity kurtosis|mean_share|power|variance|largest|dead what is drawn: outlier features, fraction of power in the mean direction, power, variance, largest variance of a feature, fraction of features with variance below eps
#: table d stat-features {run} --site {site} --per-step --buckets {buckets} --phase {steps} --stat {quantity}
#: curves d by site x percent y {quantity} buckets 100
# A panel per run, a line per site, from the first (dark) to the last (light): medians of each 1/100 of training.
# Kurtosis is 1 where all features of a site have the same power, and the number of features where one has all of it.

array number[d_curves]
array of_run[runs]
array name_first[runs]
array name_last[runs]
longest = 1
do for [r=1:runs] { of_run[r] = 0 }
do for [k=1:d_curves] {
    of_run[d_run[k]] = of_run[d_run[k]] + 1
    number[k] = of_run[d_run[k]]
}
most = 1
do for [r=1:runs] { if (of_run[r] > most) { most = of_run[r] } }
# From 0, the first site, to 1, the last.
tone(k) = of_run[d_run[k]] > 1 ? (number[k] - 1.0) / (of_run[d_run[k]] - 1.0) : 0
quantity_name(q) = q eq 'kurtosis' ? 'kurtosis over features' : q eq 'mean_share' ? 'fraction of power in the mean' : \
    q eq 'largest' ? 'largest variance of a feature' : q eq 'dead' ? 'fraction of dead features' : q.', mean over features'
is_share = quantity eq 'mean_share' || quantity eq 'dead'
least = value(sprintf('d_%s_positive', quantity))
largest = value(sprintf('d_%s_largest', quantity))
if (value(sprintf('d_%s_finite', quantity)) == 0) { eval refuse('no finite '.quantity.' of a site') }

cells = runs
pad_right = 0.85
pad_left = 0.68
gap_x = 0.5
legend_height = 0.12
eval RUN_PANELS
set pointsize 0.3
# Lines of few points have marks: a single one would not be seen.
array marked[d_curves]
do for [k=1:d_curves] {
    eval span(sprintf('d index %d', k - 1), sprintf('d_%s', quantity))
    marked[k] = span_count <= 12
}
set cbrange [0:1]
unset colorbox

set multiplot
do for [r=1:runs] {
    eval cell_panel(r)
    eval percent_x(25)
    if (is_share) { eval axis_y('linear', least, 1 / 1.06) } else { eval log_y(least, largest) }
    set title run_title(r)
    set xlabel (r + cell_columns > cells ? 'training (%)' : '') offset 0,0.7
    set ylabel (cell_column(r) == 1 ? quantity_name(quantity) : '') offset 0.2,0
    if (r == cell_columns) {
        set colorbox user origin screen (1 - 0.72 / figure_width), screen (panel_bottom(1, cell_rows) / figure_height) \
            size screen (0.08 / figure_width), screen (panel_height(cell_rows) / figure_height) noborder
        set cbtics scale 0 font ',7' offset -0.8,0 ('first site' 0, 'last site' 1)
    }
    command = ', NaN with lines palette'
    do for [k=1:d_curves] {
        if (d_run[k] == r) {
            command = command.sprintf(', d index %d using d_x:%s:(%g) with %s linewidth 0.8 dashtype solid palette', k - 1, 'd_'.quantity, tone(k), marked[k] ? 'linespoints pointtype 7' : 'lines')
        }
    }
    eval 'plot '.command[3:*]
    unset colorbox
}
eval LEGEND_DRAW
unset multiplot

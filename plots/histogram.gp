#: title values of a vector over the features of a site, at single steps
#: question features
#: runs 1- RUN.h5 [MORE.h5...]
#: samples nlp_bn_bucketed cv_bn_every
#: size 6.75 2.4
#: controls x y scale
#: site first
#: stat mu_B
#: step first,middle,last
#: choice bins 12|24|48|96 number of bins, the same for all runs and steps
#: choice spacing auto|linear|log of the bins; auto: log for positive values over two decades
#: table h stat-features {run} --histogram {bins} --spacing {spacing} --site {site} --stat {stat} --step {step}
#: curves h by site,step x from y to,share,features
# A panel per run and site: how many of its features have a value in each bin, at each step of --step. Steps are recorded steps of
# /vectors, their numbers or first, middle, last. --stat as in `heatmap`. Bins are the same at all steps of a run.

array cell_run[h_curves]
array cell_site[h_curves]
array cell_of[h_curves]
array place_of[h_curves]
site_of(k) = h_key[k][1:strlen(h_key[k])-strlen(word(h_key[k], words(h_key[k])))-1]
step_of(k) = word(h_key[k], words(h_key[k]))
cells = 0
places = 0
do for [k=1:h_curves] {
    if (k == 1 || h_run[k] != h_run[k-1] || !(site_of(k) eq site_of(k-1))) {
        cells = cells + 1
        cell_run[cells] = h_run[k]
        cell_site[cells] = site_of(k)
        place = 0
    }
    place = place + 1
    places = place > places ? place : places
    cell_of[k] = cells
    place_of[k] = place
}
# The steps of one run by their numbers; those of several, which may differ, by the words of --step.
array step_word[places]
do for [i=1:places] { step_word[i] = '' }
do for [k=1:h_curves] {
    i = place_of[k]
    step_word[i] = step_word[i] eq '' || step_word[i] eq step_of(k) ? step_of(k) : '?'
}
# The i-th part of a list with commas.
part(list, i) = i < 2 ? (strstrt(list, ',') ? list[1:strstrt(list, ',')-1] : list) : part(list[strstrt(list, ',')+1:*], i - 1)
recorded(word) = word eq 'first' || word eq 'middle' || word eq 'last' ? word.' recorded step' : 'step '.word
do for [i=1:places] {
    legend_count = legend_count + 1
    legend_text[i] = step_word[i] eq '?' ? recorded(part(step, i)) : 'step '.step_word[i]
    legend_type[i] = 950 + i
}
eval LEGEND_ROOM
do for [r=1:runs] { run_below[r] = runs > 1 ? ' ' : '' }
pad_left = 0.62
gap_x = 0.3
pad_bottom = 0.42
eval RUN_PANELS
eval span('h', 'h_share')
if (span_count == 0) { eval refuse('no finite value of '.stat.' at these steps') }
positive = 100 * (h_share_positive > 0 ? h_share_positive : 0.01)
highest = 100 * h_share_largest
filled = places <= 3 ? 0.13 : 0

array begin[h_curves]
array end[h_curves]
array first_height[h_curves]
array last_height[h_curves]
array narrow[h_curves]
array wide[h_curves]
do for [k=1:h_curves] {
    n = 0
    stats h index k-1 using (n = n + 1, \
        n == 1 ? (begin[k] = column(h_x), first_height[k] = cell(h_share), narrow[k] = column(h_to) - column(h_x)) : 0, \
        end[k] = column(h_to), last_height[k] = cell(h_share), wide[k] = column(h_to) - column(h_x), 1) nooutput name 'BIN'
}
x_log(from, to) = sprintf('set logscale x 10; set xrange [%.15g:%.15g] noextend; ', from, to).log_tics('x', from, to)
x_of(k) = wide[k] > 1.000001 * narrow[k] ? (x_given && x_from > 0 ? x_log(x_from, x_to) : x_log(begin[k], end[k])) : \
    'unset logscale x; set format x "%h"; '.x_axis(begin[k], end[k], tic_step(end[k] - begin[k], 5))

set multiplot
do for [c=1:cells] {
    eval cell_panel(c)
    command = ''
    outline = ''
    unset arrow
    do for [k=1:h_curves] {
        if (cell_of[k] == c) {
            of = k
            if (filled > 0) {
                command = command.sprintf(', h index %d using (0.5*(column(h_x)+column(h_to))):(50*cell(h_share)):h_x:h_to:(0):(100*cell(h_share)) with boxxyerror linetype %d fillstyle transparent solid %g noborder', k - 1, 950 + place_of[k], filled)
            }
            outline = outline.sprintf(', h index %d using h_x:(100*cell(h_share)) with steps linetype %d', k - 1, 950 + place_of[k])
        }
    }
    eval x_of(of)
    eval axis_y('linear', positive, highest)
    do for [k=1:h_curves] {
        if (cell_of[k] == c && last_height[k] > 0) {
            set arrow from end[k] - wide[k], 100 * last_height[k] to end[k], 100 * last_height[k] nohead linetype (950 + place_of[k])
        }
    }
    set xlabel vector_name(stat) offset 0,0.55
    set ylabel (cell_column(c) == 1 ? 'features (%)' : '') offset 0.4,0
    set format y (cell_column(c) == 1 ? '%h' : '')
    set title (runs > 1 ? run_cut[cell_run[c]]."\n" : '').cut(cell_site[c], title_most) noenhanced
    eval 'plot '.command[3:*].(filled > 0 ? outline : outline[3:*])
}
eval LEGEND_DRAW
unset multiplot

#: title Transformers without Normalization: output of a normalization against its input, entry by entry (Zhu et al. 2025, fig. 2)
#: question features
#: runs 1- RUN.h5 [MORE.h5...]
#: samples pairs_ln
#: size 6.75 2.3
#: controls x y
#: site first,middle,last
#: table p stat-pairs {run} --site {site}
# A panel per site, a row per run: a dot for each pair of the pass after training (statrec train --final-tid --pairs 1000),
# the entry of the site's input and its output there before gain and bias. Axes of x are each panel's own, those of y each run's.
# A straight line is a normalization by one mean and one deviation; LN bends where rows have other deviations than most.

array site_count[runs]
array site_names[runs]
panels = 0
found(s) = strstrt(names, "\n".s."\n") ? 1 : (names = names.s."\n", count = count + 1)
do for [r=1:runs] {
    names = "\n"
    count = 0
    stats p index r-1 using (found(strcol(p_site))) nooutput name 'SITE'
    site_names[r] = names
    site_count[r] = count
    panels = panels > count ? panels : count
}
# The i-th line of names, which begin and end with a newline.
rest(text, i) = i < 2 ? text[2:*] : rest(text[strstrt(text[2:*], "\n")+1:*], i - 1)
line_of(text, i) = rest(text, i)[1:strstrt(rest(text, i), "\n")-1]
shown = ''
of_shown(v) = strcol(p_site) eq shown ? v : NaN
array low[runs]
array high[runs]
drawn = 0
do for [r=1:runs] {
    eval span(sprintf('p index %d', r - 1), 'p_y')
    low[r] = span_count > 0 ? span_low : -1
    high[r] = span_count > 0 ? span_high : 1
    drawn = drawn + span_count
}
if (drawn == 0) { eval refuse('no finite pair of input and output') }

columns = panels < 4 ? panels : 4
lines = 0
do for [r=1:runs] { lines = lines + int((site_count[r] - 1) / columns) + 1 }
pad_left = 0.55
pad_bottom = 0.4
gap_x = 0.34
gap_y = runs > 1 ? 0.52 : 0.42
legend_height = runs > 1 ? 0.34 : 0.24
figure_height = grow((figure_height - head_height - note_height) * lines + head_height + note_height)
eval terminal(figure_height)
# Seven points where letter_width is of eight.
fitting(text) = cut_to(text, (panel_width(columns) + 0.25) * 8 / 7)
dot_colour(r) = '#A0'.look_colour[1+(line_look[r]-1)%8][2:*]
set title noenhanced font ',7' offset 0,-0.7
set grid xtics ytics
set pointsize 0.22

set multiplot
line = 0
do for [r=1:runs] {
    do for [i=1:site_count[r]] {
        shown = line_of(site_names[r], i)
        column_at = (i - 1) % columns + 1
        line = line + (column_at == 1)
        unset xrange
        unset yrange
        eval span_of(sprintf('p index %d', r - 1), 'p_x', 'of_shown(column(p_x))')
        if (span_count == 0) { span_low = -1; span_high = 1 }
        from = low_end(span_low - room(span_low, span_high), span_high + room(span_low, span_high))
        to = high_end(span_low - room(span_low, span_high), span_high + room(span_low, span_high))
        eval panel(column_at, columns, line, lines)
        eval x_axis(from, to, tic_step(to - from, 5))
        eval linear_y(low[r], high[r])
        set title (runs > 1 ? fitting(run_label[r])."\n" : '').fitting(shown)
        set format y (column_at == 1 ? '%h' : '')
        set xlabel (line == lines || i + columns > site_count[r] && r == runs ? 'input' : '') offset 0,0.7
        set ylabel (column_at == 1 ? 'output before gain and bias' : '') offset 0.6,0
        plot p index r-1 using (of_shown(cell(p_x))):(cell(p_y)) with points pointtype 7 linecolor rgb dot_colour(r)
    }
}
eval LEGEND_DRAW
unset multiplot

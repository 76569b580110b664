# Shared look of the figures: sizes of paper columns, 8 point text, colours that colour-blind readers
# tell apart (Wong, Nature Methods 2011), one dash pattern per colour for print in grey.
# statplot has set: figure_width, figure_height (inches), runs, run_label[], run_full[], shared.

set encoding utf8
set datafile separator tab

set linetype 1 lc rgb '#0072B2' lw 0.9 dt solid      pt 7
set linetype 2 lc rgb '#D55E00' lw 0.9 dt (9,2)      pt 5
set linetype 3 lc rgb '#009E73' lw 0.9 dt (3,2)      pt 9
set linetype 4 lc rgb '#CC79A7' lw 0.9 dt (9,2,2,2)  pt 11
set linetype 5 lc rgb '#56B4E9' lw 0.9 dt (5,2)      pt 13
set linetype 6 lc rgb '#E69F00' lw 0.9 dt (5,2,2,2)  pt 6
set linetype 7 lc rgb '#000000' lw 0.9 dt (2,4)      pt 4
set linetype 8 lc rgb '#999999' lw 0.9 dt (14,3)     pt 8
set linetype cycle 8
set pointsize 0.3

set border 3 lc rgb '#404040' lw 0.5
set tics out nomirror scale 0.5,0.25 textcolor rgb '#202020'
set grid ytics lc rgb '#D8D8D8' lw 0.4 dt solid
set xtics offset 0,0.35
unset key

# -- panels ------------------------------------------------------------------------------------
# eval panel(column, columns, row, rows) puts the next plot there; all lengths in inches.
pad_left = 0.56
pad_right = 0.16
pad_bottom = 0.36
gap_x = 0.66
gap_y = 0.46
legend_height = 0.06
panel_width(n) = (figure_width - pad_left - pad_right - (n - 1) * gap_x) / n
panel_height(n) = (figure_height - legend_height - pad_bottom - (n - 1) * gap_y) / n
panel_left(i, n) = pad_left + (i - 1) * (panel_width(n) + gap_x)
panel_bottom(i, n) = pad_bottom + (n - i) * (panel_height(n) + gap_y)
panel(c, cs, r, rs) = sprintf('set lmargin at screen %.5f; set rmargin at screen %.5f; '. \
    'set bmargin at screen %.5f; set tmargin at screen %.5f', \
    panel_left(c, cs) / figure_width, (panel_left(c, cs) + panel_width(cs)) / figure_width, \
    panel_bottom(r, rs) / figure_height, (panel_bottom(r, rs) + panel_height(rs)) / figure_height)

# -- legend ------------------------------------------------------------------------------------
# Above the panels, never over data. Fill legend_text[i] and legend_type[i] (linetype) for i = 1 ..
# legend_count, call eval LEGEND_ROOM before the first panel, and eval LEGEND_DRAW as the last plot.
array legend_text[64]
array legend_type[64]
legend_count = 0
LEGEND_ROOM = 'legend_longest = 1; '. \
    'do for [i=1:legend_count] { if (strlen(legend_text[i]) > legend_longest) { legend_longest = strlen(legend_text[i]) } }; '. \
    'legend_columns = int((figure_width - 0.2) / (0.068 * legend_longest + 0.5)); '. \
    'if (legend_columns < 1) { legend_columns = 1 }; '. \
    'if (legend_columns > legend_count) { legend_columns = legend_count }; '. \
    'legend_height = 0.12 + 0.15 * ceil(1.0 * legend_count / legend_columns)'
LEGEND_DRAW = 'set lmargin at screen 0; set rmargin at screen 1; set bmargin at screen 0; '. \
    'set tmargin at screen 1; unset border; unset tics; unset xlabel; unset ylabel; unset title; unset grid; '. \
    'unset logscale; unset label; set xrange [0:1]; set yrange [0:1]; '. \
    'set key at screen 0.5, screen (1 - 0.03 / figure_height) center top horizontal Left reverse noenhanced '. \
    'samplen 2.5 width 1 maxcols legend_columns maxrows 64 textcolor rgb "#202020"; '. \
    'plot for [i=1:legend_count] NaN with lines linetype legend_type[i] title legend_text[i]'

# Runs one of the small programs below again and again, times it, and prints what it gave as a line of JSON:
#
#     perl bench.pl NAME --target-ms MS [--warm-up-ms MS]
#     perl bench.pl NAME --operations N
#     perl bench.pl --describe
#
# The timed loop is compiled with the program's text in it, so that no call is measured that is not the
# program's own. Where a program is short, its text stands in the loop several times. What it gave is checked
# by who reads the line.
use strict;
use warnings;
no warnings qw(once recursion redefine void);
use Time::HiRes qw(clock_gettime CLOCK_MONOTONIC);

my $random = 1;

# Numerical Recipes' generator, the same in every language.
sub chance { return ($random = ($random * 1664525 + 1013904223) % 4294967296) >> 16 }

my @syllables = qw(ka lo mi ne ru sa ti vo zu be);

sub word {
	my $n = chance() % 700;
	return $syllables[$n % 10] . $syllables[int($n / 10) % 10] . $syllables[int($n / 100)];
}

sub words { return map { word() } 1 .. $_[0] }

sub measurements {
	return map { sprintf "%d %f %f\n", $_, chance() / 65536, chance() / 65536 } 0 .. $_[0];
}

sub document {
	my $rows = join '', map {
		my ($name, $title, $text) = words(3);
		"<tr class=\"row\" id=\"r$_\"><td><a href=\"/$name/$_\" title=\"$title\">$text</a></td></tr>\n"
		    . ($_ % 5 ? '' : "<!-- $name -->\n")
	} 1 .. 60;
	return "<html>\n<body>\n<table>\n$rows</table>\n</body>\n</html>\n";
}

sub log_lines {
	return map {
		my ($user, $host) = words(2);
		my $at = $_ % 3 ? '@' : ' at ';
		sprintf "%s%d%s%s%d.org GET /%s %d\n", $user, $_, $at, $host, chance() % 100, $host, chance();
	} 1 .. $_[0];
}

# Whitcher's, as he printed it, but for what his reader misread.
my $moving_average = q{
	my (@in, @out);
	my ($line, $printed, $last) = (0, 0, '');
	for (@lines) {
		++$line;
		my ($hr, $inp, $outp) = split ' ', $_, 999;
		if ($line <= 60) {
			unshift @in, $inp;
			unshift @out, $outp;
			next;
		}
		pop @in;
		pop @out;
		unshift @in, $inp;
		unshift @out, $outp;
		if ($line / 10 == int($line / 10)) {
			my $sumi = my $sumo = 0;
			for (my $i = 1; $i < 21; $i++) {
				$sumi += $in[$i] * (20 / $i);
				$sumo += $out[$i] * (20 / $i);
			}
			$last = sprintf "%f %f %f", $hr, $sumi / 60, $sumo / 60;
			++$printed;
		}
	}
	$result = "$printed lines, $last";
};

sub plain_fib {
	local ($main::n) = $_[0];
	if ($main::n == 0) { return 0 }
	elsif ($main::n == 1) { return 1 }
	return plain_fib($main::n - 1) + plain_fib($main::n - 2);
}

# Larry Wall's.
sub wall_fib { $_[0] == 0 ? 0 : $_[0] == 1 ? 1 : &wall_fib($_[0] - 1) + &wall_fib($_[0] - 2) }

sub fib { my ($n) = @_; return $n < 2 ? $n : fib($n - 1) + fib($n - 2) }

sub none { return 1 }
sub one { my ($first) = @_; return $first + 1 }
sub two { my ($first, $second) = @_; return $first + $second }
sub nine { my ($c, $d, $e, $f, $g, $h, $i, $j, $k) = @_; return $c + $d + $e + $f + $g + $h + $i + $j + $k }
sub empty { }
sub context { return wantarray ? (1, 2, 3) : 7 }

{ package Shape; sub new { return bless { size => $_[1] }, $_[0] } sub size { return $_[0]{size} } }
{ package Square; our @ISA = 'Shape'; }
{ package Tile; our @ISA = 'Square'; }

# prepare: once, not timed. body: one operation; it stands `times` times in the loop. result: what it gave.
my %programs = (
	# The family that all languages have.
	'fib' => { body => q{$result = fib(20);} },
	'movavg' => { prepare => q{my @lines = measurements(3000);}, body => $moving_average },
	'wordcount' => {
		prepare => q{my $text = join ' ', words(4000);},
		body => q{
			my (%count, $words);
			for my $word (split ' ', $text) { ++$count{$word}; ++$words }
			my ($top) = sort { $count{$b} <=> $count{$a} || $a cmp $b } keys %count;
			$result = "$words words, " . keys(%count) . " different, $top $count{$top}";
		},
	},
	'regex' => {
		prepare => q{my $text = join '', log_lines(600);},
		body => q{
			my ($found, $sum) = (0, 0);
			while ($text =~ /([a-z]+)([0-9]+)@([a-z]+)([0-9]+)\.([a-z]+)/g) {
				++$found;
				$sum += $2 + $4 + length($1) + length($3);
			}
			$result = "$found found, $sum";
		},
	},
	'hash' => {
		prepare => q{my @keys = map { 'k' . chance() % 20000 } 1 .. 10000;},
		body => q{
			my (%seen, $hits);
			++$seen{$keys[$_]} for 0 .. 4999;
			for (5000 .. 9999) { ++$hits if exists $seen{$keys[$_]} }
			$result = keys(%seen) . " different, $hits found";
		},
	},
	'sort' => {
		prepare => q{my @numbers = map { chance() * 65536 + chance() } 1 .. 3000; my @words = words(2000);},
		body => q{
			my @sorted = sort { $a <=> $b } @numbers;
			my @names = sort @words;
			my ($sum, $at) = (0, 0);
			$sum = ($sum + ++$at * ($_ % 1000)) % 1000003 for @sorted;
			$result = "$sum $names[0] $names[1000] $names[-1]";
		},
	},
	'string' => {
		body => q{
			my $text = '';
			for (my $i = 0; $i < 4000; $i++) { $text .= $i . ',' }
			my @parts = split /,/, $text;
			my $joined = uc join '-', reverse @parts;
			$joined =~ s/7/seven/g;
			$result = length($joined) . ' ' . substr($joined, 0, 20);
		},
	},
	'html' => {
		prepare => q{my $text = document();},
		body => q{
			my ($tags, $ends, $attributes, $comments, $bytes) = (0, 0, 0, 0, 0);
			pos($text) = 0;
			while (pos($text) < length $text) {
				if ($text =~ /\G<!--.*?-->/gcs) { ++$comments }
				elsif ($text =~ /\G<\/([a-z]+)>/gc) { ++$ends }
				elsif ($text =~ /\G<([a-z]+)([^>]*)>/gc) {
					++$tags;
					my $inside = $2;
					++$attributes while $inside =~ /([a-z]+)="([^"]*)"/g;
				}
				elsif ($text =~ /\G([^<]+)/gc) { $bytes += length $1 }
				else { die "no token\n" }
			}
			$result = "$tags tags, $ends ends, $attributes attributes, $comments comments, $bytes bytes";
		},
	},

	# Whitcher's.
	'fib-28' => { body => q{$result = plain_fib(28);} },
	'fib-32' => { body => q{$result = plain_fib(32);} },
	'fib-32-wall' => { body => q{$result = wall_fib(32);} },
	'movavg-25k' => { prepare => q{my @lines = measurements(25000);}, body => $moving_average },
	'movavg-100k' => { prepare => q{my @lines = measurements(100000);}, body => $moving_average },

	# perlbench's forty, but for those that are whole processes.
	'arith-mixed' => {
		times => 10,
		prepare => q{my ($i, $f);},
		body => q{$i = 5; $f = 3.5; $i = $i + 3; $f = $f * 1.5; $i = $i % 7; $f = $f / 2; $i++; $f++;
			$i = $i * 9; $f = $f * $i;},
		result => q{"$i $f"},
	},
	'arith-trig' => {
		times => 10,
		prepare => q{my ($x, $y, $z);},
		body => q{$x = sin(1.25); $y = cos($x); $z = atan2($y, $x); $x = sin($z) * cos($y);},
		result => q{sprintf '%.9f', $x},
	},
	'array-copy' => {
		times => 5,
		prepare => q{my @from = 1 .. 200; my (@to, @part);},
		body => q{@to = @from; @part = @from[10 .. 19];},
		result => q{@to . " $to[-1] @part"},
	},
	'array-foreach' => {
		times => 5,
		prepare => q{my @full = 1 .. 30; my @none; my $last;},
		body => q{for (@full) { $last = $_ } for (@none) { $last = 0 }},
		result => q{$last},
	},
	'array-index' => {
		times => 5,
		prepare => q{my @from = 1 .. 20; my $x;},
		body => q{$x = $from[0]; $x = $from[5]; $x = $from[-1]; $x = $from[10]; $from[1] = 5; $from[2] = 6;
			$x = $from[3]; $x = $from[12]; $x = $from[-2]; $x = $from[7]; $from[4] = 7; $from[-5] = 8;},
		result => q{"$x @from"},
	},
	'array-pop' => {
		times => 5,
		prepare => q{my (@stack, $x); $x = 0;},
		body => q{push @stack, $_ for 1 .. 10; $x = pop @stack; $x = pop @stack while @stack;},
		result => q{"$x " . @stack},
	},
	'array-shift' => {
		times => 5,
		prepare => q{my @queue = 1 .. 10; my $x;},
		body => q{$x = shift @queue; push @queue, $x; $x = pop @queue; unshift @queue, $x;},
		result => q{"$x @queue"},
	},
	'array-sort-num' => {
		prepare => q{my @from = map { chance() } 1 .. 200; my @to;},
		body => q{@to = sort { $a <=> $b } @from;},
		result => q{"$to[0] $to[100] $to[-1]"},
	},
	'array-sort' => {
		prepare => q{my @from = words(300); my @to;},
		body => q{@to = sort @from;},
		result => q{"$to[0] $to[150] $to[-1]"},
	},
	'call-0arg' => { times => 10, prepare => q{my $x;}, body => q{$x = none();}, result => q{$x} },
	'call-1arg' => { times => 10, prepare => q{my $x;}, body => q{$x = one(3);}, result => q{$x} },
	'call-2arg' => { times => 10, prepare => q{my $x;}, body => q{$x = two(3, 4);}, result => q{$x} },
	'call-9arg' => {
		times => 10,
		prepare => q{my $x;},
		body => q{$x = nine(1, 2, 3, 4, 5, 6, 7, 8, 9);},
		result => q{$x},
	},
	'call-empty' => { times => 5, body => q{&empty; &empty; &empty; &empty; &empty; &empty;},
		result => q{scalar(() = empty())} },
	'call-fib' => { prepare => q{my $x;}, body => q{$x = fib(17);}, result => q{$x} },
	'call-method' => {
		times => 5,
		prepare => q{my $tile = Tile->new(12); my $x;},
		body => q{$x = $tile->size; $x = $tile->size; $x = $tile->size; $x = $tile->size;},
		result => q{$x},
	},
	'call-wantarray' => {
		times => 5,
		prepare => q{my ($x, @list);},
		body => q{$x = context(); @list = context();},
		result => q{"$x @list"},
	},
	'hash-copy' => {
		times => 5,
		prepare => q{my %from = map { $_ => 1 } qw(a b c d e f); my (%to, $size);},
		body => q{%to = %from; $size = keys %to; %to = ();},
		result => q{"$size " . keys %to},
	},
	'hash-each' => {
		prepare => q{my %from = map { ("k$_" => $_) } 1 .. 1000; my $sum;},
		body => q{$sum = 0; while (my ($key, $value) = each %from) { $sum += $value }},
		result => q{$sum},
	},
	'hash-foreach-sort' => {
		prepare => q{my %from = map { ("k$_" => $_) } 1 .. 70; my $last;},
		body => q{for my $key (sort keys %from) { $last = $key }},
		result => q{$last},
	},
	'hash-foreach' => {
		prepare => q{my %from = map { ("k$_" => $_) } 1 .. 80; my $sum;},
		body => q{$sum = 0; for my $key (keys %from) { $sum += $from{$key} }},
		result => q{$sum},
	},
	'hash-get' => {
		times => 2,
		prepare => q{my %from = map { ("k$_" => $_) } 1 .. 30; my ($x, $miss);},
		body => q{$x = $from{k1}; $x = $from{k2}; $x = $from{k3}; $x = $from{k5}; $x = $from{k7};
			$x = $from{k11}; $x = $from{k13}; $x = $from{k17}; $x = $from{k19}; $x = $from{k23};
			$x = $from{k29}; $miss = $from{q}; $miss = $from{qq}; $miss = $from{k31};
			$miss = $from{k32}; $miss = $from{k33}; $miss = $from{k34};},
		result => q{$x . (defined $miss ? 'found' : '')},
	},
	'hash-set' => {
		times => 2,
		prepare => q{my %to;},
		body => q{%to = (); $to{a} = 1; $to{b} = 2; $to{c} = 3; $to{d} = 4; $to{e} = 5; $to{f} = 6;
			$to{g} = 7; $to{h} = 8; $to{a} = 9; $to{b} = 10; $to{c} = 11; $to{i} = 12; $to{j} = 13;
			$to{k} = 14; $to{l} = 15;},
		result => q{keys(%to) . " $to{a} $to{l}"},
	},
	'loop-for-c' => {
		prepare => q{my $i;},
		body => q{for ($i = 0; $i < 1000; $i++) { }},
		result => q{$i},
	},
	'loop-for-range-const' => {
		prepare => q{my $last;},
		body => q{for (1 .. 10_000) { $last = $_ }},
		result => q{$last},
	},
	'loop-for-range' => {
		prepare => q{my ($low, $high, $last) = (1, 300);},
		body => q{for ($low .. $high) { $last = $_ }},
		result => q{$last},
	},
	'loop-getline' => {
		prepare => q{
			open my $log, '+>', "getline.$$" or die "getline.$$: $!\n";
			unlink "getline.$$";
			print $log log_lines(3000);
			my ($lines, $found);
		},
		body => q{
			seek $log, 0, 0;
			$lines = $found = 0;
			while (my $line = <$log>) { ++$lines; ++$found if $line =~ /\.org GET \/ka/ }
		},
		result => q{"$lines lines, $found found"},
	},
	'loop-while-my' => {
		prepare => q{my @from = 1 .. 300; my ($i, $last);},
		body => q{$i = 0; while (my $value = $from[$i]) { $last = $value; $i++ }},
		result => q{$last},
	},
	'loop-while' => { prepare => q{my $i;}, body => q{$i = 0; while ($i < 30_000) { $i++ }}, result => q{$i} },
	're-const' => {
		times => 2,
		prepare => q{my $text = substr(join(' ', words(40)), 0, 196) . ' end.ok'; my ($one, $two, $three);},
		body => q{$one = $text =~ /^kalo/; $two = $text =~ /end\.ok$/; $three = $text =~ /zuzuzu/;},
		result => q{join ' ', map { $_ ? 1 : 0 } $one, $two, $three},
	},
	're-w' => {
		prepare => q{my $text = join ' ', words(30); my $found;},
		body => q{$found = 0; while ($text =~ /(\w+)/g) { ++$found }},
		result => q{$found},
	},
	'string-base64' => {
		prepare => q{my $text = join ' ', words(100); my $coded;},
		body => q{
			$coded = '';
			pos($text) = 0;
			while ($text =~ /(.{1,45})/gs) { $coded .= substr(pack('u', $1), 1); chop $coded }
			$coded =~ tr|` -_|AA-Za-z0-9+/|;
		},
		result => q{length($coded) . ' ' . substr($coded, 0, 20)},
	},
	'string-htmlparser' => {
		prepare => q{my $text = document(); my ($tags, $bytes);},
		body => q{
			my $rest = $text;
			$tags = $bytes = 0;
			while (length $rest) {
				if ($rest =~ s/^([^<]+)//) { $bytes += length $1 }
				elsif ($rest =~ s/^<!--.*?-->//s) { }
				elsif ($rest =~ s/^<\/?[a-z]+[^>]*>//) { ++$tags }
				else { die "no token\n" }
			}
		},
		result => q{"$tags tags, $bytes bytes"},
	},
	'string-index-const' => {
		times => 5,
		prepare => q{my $text = ('ka' x 100) . 'end' . ('lo' x 100); my ($one, $two, $three);},
		body => q{$one = index $text, 'end'; $two = index $text, 'absent'; $three = rindex $text, 'ka';},
		result => q{"$one $two $three"},
	},
	'string-index-var' => {
		times => 5,
		prepare => q{my $text = ('ka' x 100) . 'end' . ('lo' x 100); my ($one, $two, $three);
			my ($first, $second, $third) = qw(end absent ka);},
		body => q{$one = index $text, $first; $two = index $text, $second; $three = rindex $text, $third;},
		result => q{"$one $two $three"},
	},
	'string-ipol' => {
		times => 5,
		prepare => q{my ($first, $second, $third, $text) = ('one', 2, 3.5);},
		body => q{$text = "a $first and $second or $third, $first$second$third.";},
		result => q{$text},
	},
	'string-tr' => {
		times => 5,
		prepare => q{my $from = join(' ', words(50)); my $text;},
		body => q{$text = $from; $text =~ tr/a-z/A-Z/; $text =~ tr/A-Z/a-z/; $text =~ tr/a-m/A-M/;},
		result => q{substr $text, 0, 20},
	},
);

sub compiled {
	my ($program) = @_;
	my $times = $program->{times} || 1;
	my $prepare = $program->{prepare} || '';
	my $value = $program->{result} || '$result';
	my $body = $program->{body} x $times;
	# A loop that is left and entered again goes on with what it had: prepared once.
	my $code = eval "$prepare my \$result = ''; sub {
		my \$left = shift;
		my \$began = clock_gettime(CLOCK_MONOTONIC);
		while (\$left-- > 0) { $body }
		my \$took = clock_gettime(CLOCK_MONOTONIC) - \$began;
		return (\$took, $value);
	}";
	die $@ if $@;
	return ($code, $times);
}

sub describe {
	require Config;
	my @options = map { ref($_) ? @$_ : $_ } (defined &Config::non_bincompat_options
		? (Config::non_bincompat_options(), Config::bincompat_options()) : ());
	my $options = join ' ', @options;
	my $flags = $Config::Config{ccflags};
	# What these do is told by its own name.
	$flags =~ s/\s*-D(DEBUGGING|_REENTRANT)\b//g;
	my %told = (
		path => readlink('/proc/self/exe') || $^X,
		version => sprintf('%vd', $^V),
		compiler => "$Config::Config{cc} $Config::Config{gccversion}",
		optimize => $Config::Config{optimize},
		ccflags => $flags,
		threads => $Config::Config{usethreads} ? 'yes' : 'no',
		DEBUGGING => $options =~ /\bDEBUGGING\b/ ? 'yes' : 'no',
		'own malloc' => $Config::Config{usemymalloc} || 'n',
		'size of numbers' => "$Config::Config{ivsize} and $Config::Config{nvsize} bytes",
	);
	print json(%told), "\n";
}

sub json {
	my (%fields) = @_;
	my @pairs;
	for my $name (sort keys %fields) {
		my $value = defined $fields{$name} ? $fields{$name} : '';
		if ($value !~ /^-?[0-9]+(\.[0-9]+(e[-+]?[0-9]+)?)?$/ || $name eq 'result' || $name eq 'version') {
			$value =~ s/([\\"])/\\$1/g;
			$value =~ s/([\x00-\x1f])/sprintf '\\u%04x', ord $1/ge;
			$value = "\"$value\"";
		}
		push @pairs, "\"$name\":$value";
	}
	return '{' . join(',', @pairs) . '}';
}

sub main {
	my ($name, @options) = @_;
	return describe() if $name eq '--describe';
	my %option = @options;
	my $program = $programs{$name} or die "there is no program $name\n";
	my ($run, $times) = compiled($program);
	my ($rounds, $total) = (1, 0);
	my ($took, $result);
	my $round = sub { ($took, $result) = $run->($rounds); $total += $rounds };
	if ($option{'--operations'}) {
		my $wanted = $option{'--operations'} / $times;
		$rounds = int($wanted) < $wanted ? int($wanted) + 1 : int($wanted);
		$round->();
	} else {
		my $target = $option{'--target-ms'} / 1000;
		my $warm_up = ($option{'--warm-up-ms'} || 0) / 1000;
		my $began = clock_gettime(CLOCK_MONOTONIC);
		$round->();
		while ($took < $target / 4) {
			$rounds *= 2;
			$round->();
		}
		# An operation that takes that long is the sample itself.
		unless ($rounds == 1 && $took >= $target && !$warm_up) {
			$rounds = int($rounds * $target / $took) || 1;
			$round->() while clock_gettime(CLOCK_MONOTONIC) - $began < $warm_up;
			$round->();
		}
	}
	my $operations = $rounds * $times;
	print json(
		workload => "interp:perl.$name",
		operations => $operations,
		total_operations => $total * $times,
		elapsed_ns => sprintf('%.0f', $took * 1e9),
		unit => 'ops/s',
		result => $result,
	), "\n";
}

main(@ARGV);

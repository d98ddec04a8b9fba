<?php
// Runs one of the small programs below again and again, times it, and prints what it gave as a line of JSON:
//
//     php bench.php NAME --target-ms MS [--warm-up-ms MS]
//     php bench.php NAME --operations N
//     php bench.php --describe
//
// The programs and their results are those of bench.pl.
declare(strict_types=1);

$state = 1;

function chance(): int
{
    global $state;
    $state = ($state * 1664525 + 1013904223) % 4294967296;
    return $state >> 16;
}

const SYLLABLES = ['ka', 'lo', 'mi', 'ne', 'ru', 'sa', 'ti', 'vo', 'zu', 'be'];

function word(): string
{
    $n = chance() % 700;
    return SYLLABLES[$n % 10] . SYLLABLES[intdiv($n, 10) % 10] . SYLLABLES[intdiv($n, 100)];
}

function words(int $n): array
{
    $words = [];
    for ($i = 0; $i < $n; $i++) {
        $words[] = word();
    }
    return $words;
}

function measurements(int $n): array
{
    $lines = [];
    for ($i = 0; $i <= $n; $i++) {
        $first = chance() / 65536;
        $second = chance() / 65536;
        $lines[] = sprintf("%d %F %F\n", $i, $first, $second);
    }
    return $lines;
}

function document(): string
{
    $rows = '';
    for ($i = 1; $i <= 60; $i++) {
        [$name, $title, $text] = words(3);
        $rows .= "<tr class=\"row\" id=\"r$i\"><td><a href=\"/$name/$i\" title=\"$title\">$text</a></td></tr>\n";
        if ($i % 5 === 0) {
            $rows .= "<!-- $name -->\n";
        }
    }
    return "<html>\n<body>\n<table>\n$rows</table>\n</body>\n</html>\n";
}

function log_lines(int $n): array
{
    $lines = [];
    for ($i = 1; $i <= $n; $i++) {
        [$user, $host] = words(2);
        $at = $i % 3 ? '@' : ' at ';
        $number = chance() % 100;
        $size = chance();
        $lines[] = "$user$i$at$host$number.org GET /$host $size\n";
    }
    return $lines;
}

function fib(int $n): int
{
    return $n < 2 ? $n : fib($n - 1) + fib($n - 2);
}

function prepare_fib(): Closure
{
    return fn () => (string) fib(20);
}

function prepare_movavg(): Closure
{
    $lines = measurements(3000);
    return function () use ($lines) {
        $in = $out = [];
        $number = $printed = 0;
        $last = '';
        foreach ($lines as $line) {
            ++$number;
            [$hr, $inp, $outp] = array_map('floatval', explode(' ', $line));
            if ($number <= 60) {
                array_unshift($in, $inp);
                array_unshift($out, $outp);
                continue;
            }
            array_pop($in);
            array_pop($out);
            array_unshift($in, $inp);
            array_unshift($out, $outp);
            if ($number % 10 === 0) {
                $sumi = $sumo = 0;
                for ($i = 1; $i < 21; $i++) {
                    $sumi += $in[$i] * (20 / $i);
                    $sumo += $out[$i] * (20 / $i);
                }
                $last = sprintf('%F %F %F', $hr, $sumi / 60, $sumo / 60);
                ++$printed;
            }
        }
        return "$printed lines, $last";
    };
}

function prepare_wordcount(): Closure
{
    $text = implode(' ', words(4000));
    return function () use ($text) {
        $count = [];
        $total = 0;
        foreach (explode(' ', $text) as $word) {
            $count[$word] = ($count[$word] ?? 0) + 1;
            ++$total;
        }
        $names = array_keys($count);
        usort($names, fn ($a, $b) => $count[$b] <=> $count[$a] ?: strcmp($a, $b));
        return "$total words, " . count($count) . " different, $names[0] {$count[$names[0]]}";
    };
}

function prepare_regex(): Closure
{
    $text = implode('', log_lines(600));
    return function () use ($text) {
        $sum = 0;
        $found = preg_match_all('/([a-z]+)([0-9]+)@([a-z]+)([0-9]+)\.([a-z]+)/', $text, $all, PREG_SET_ORDER);
        foreach ($all as $match) {
            $sum += (int) $match[2] + (int) $match[4] + strlen($match[1]) + strlen($match[3]);
        }
        return "$found found, $sum";
    };
}

function prepare_hash(): Closure
{
    $keys = [];
    for ($i = 0; $i < 10000; $i++) {
        $keys[] = 'k' . (chance() % 20000);
    }
    return function () use ($keys) {
        $seen = [];
        $hits = 0;
        for ($i = 0; $i < 5000; $i++) {
            $seen[$keys[$i]] = ($seen[$keys[$i]] ?? 0) + 1;
        }
        for ($i = 5000; $i < 10000; $i++) {
            if (isset($seen[$keys[$i]])) {
                ++$hits;
            }
        }
        return count($seen) . " different, $hits found";
    };
}

function prepare_sort(): Closure
{
    $numbers = [];
    for ($i = 0; $i < 3000; $i++) {
        $high = chance();
        $numbers[] = $high * 65536 + chance();
    }
    $names = words(2000);
    return function () use ($numbers, $names) {
        sort($numbers);
        sort($names, SORT_STRING);
        $sum = $at = 0;
        foreach ($numbers as $value) {
            $sum = ($sum + ++$at * ($value % 1000)) % 1000003;
        }
        return "$sum $names[0] $names[1000] " . $names[count($names) - 1];
    };
}

function prepare_string(): Closure
{
    return function () {
        $text = '';
        for ($i = 0; $i < 4000; $i++) {
            $text .= $i . ',';
        }
        $parts = explode(',', $text);
        array_pop($parts);
        $joined = str_replace('7', 'seven', strtoupper(implode('-', array_reverse($parts))));
        return strlen($joined) . ' ' . substr($joined, 0, 20);
    };
}

function prepare_html(): Closure
{
    $text = document();
    return function () use ($text) {
        $at = $tags = $ends = $attributes = $comments = $bytes = 0;
        $length = strlen($text);
        while ($at < $length) {
            if (preg_match('/\G<!--.*?-->/s', $text, $match, 0, $at)) {
                ++$comments;
            } elseif (preg_match('/\G<\/([a-z]+)>/', $text, $match, 0, $at)) {
                ++$ends;
            } elseif (preg_match('/\G<([a-z]+)([^>]*)>/', $text, $match, 0, $at)) {
                ++$tags;
                $attributes += preg_match_all('/([a-z]+)="([^"]*)"/', $match[2]);
            } elseif (preg_match('/\G[^<]+/', $text, $match, 0, $at)) {
                $bytes += strlen($match[0]);
            } else {
                throw new Exception('no token');
            }
            $at += strlen($match[0]);
        }
        return "$tags tags, $ends ends, $attributes attributes, $comments comments, $bytes bytes";
    };
}

function describe(): void
{
    ob_start();
    phpinfo(INFO_GENERAL);
    $text = ob_get_clean();
    $configured = preg_match('/Configure Command => (.*)/', $text, $match) ? $match[1] : '';
    $has_cache = extension_loaded('Zend OPcache') && ini_get('opcache.enable_cli');
    echo json_encode([
        'path' => readlink('/proc/self/exe'),
        'version' => PHP_VERSION,
        'configured with' => $configured,
        'thread safety' => PHP_ZTS ? 'yes' : 'no',
        'debug build' => PHP_DEBUG ? 'yes' : 'no',
        'opcache' => $has_cache ? 'yes' : 'no',
        'JIT' => $has_cache ? (string) ini_get('opcache.jit') : 'no',
        'extensions' => implode(' ', get_loaded_extensions()),
    ], JSON_UNESCAPED_SLASHES), "\n";
}

function main(array $arguments): void
{
    if ($arguments[1] === '--describe') {
        describe();
        return;
    }
    $name = $arguments[1];
    $option = [];
    for ($i = 2; $i < count($arguments); $i += 2) {
        $option[$arguments[$i]] = (int) $arguments[$i + 1];
    }
    $run = "prepare_$name"();
    $rounds = 1;
    $total = $took = 0;
    $result = '';
    $turn = function () use ($run, &$rounds, &$total, &$took, &$result) {
        $total += $rounds;
        $began = hrtime(true);
        for ($i = 0; $i < $rounds; $i++) {
            $result = $run();
        }
        $took = hrtime(true) - $began;
    };
    if (isset($option['--operations'])) {
        $rounds = $option['--operations'];
        $turn();
    } else {
        $target = $option['--target-ms'] * 1000000;
        $warm_up = ($option['--warm-up-ms'] ?? 0) * 1000000;
        $began = hrtime(true);
        $turn();
        while ($took < $target / 4) {
            $rounds *= 2;
            $turn();
        }
        // An operation that takes that long is the sample itself.
        if (!($rounds === 1 && $took >= $target && !$warm_up)) {
            $rounds = max(1, (int) ($rounds * $target / $took));
            while (hrtime(true) - $began < $warm_up) {
                $turn();
            }
            $turn();
        }
    }
    echo json_encode([
        'workload' => "interp:php.$name",
        'operations' => $rounds,
        'total_operations' => $total,
        'elapsed_ns' => $took,
        'unit' => 'ops/s',
        'result' => $result,
    ]), "\n";
}

main($argv);

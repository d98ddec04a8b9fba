#!/usr/bin/perl
# A client in Perl for the databases of weigh: random keys are looked up, and inserted if absent.
#
# Usage: random-insert.pl CLIENTS QUERIES
#
# Each client has a connection, a process and a table of its own. All begin together. The last line is what
# weigh reads: the queries of all clients, and their time without that of connecting.
use strict;
use warnings;
use DBI;
use Time::HiRes qw(clock_gettime CLOCK_MONOTONIC);

my ($clients, $queries) = @ARGV;
die "usage: random-insert.pl CLIENTS QUERIES\n" unless $clients && $queries;
my ($kind, $address) = split /:/, $ENV{WEIGH_DATABASE} // die("WEIGH_DATABASE is not set\n"), 2;

sub connection {
	my %options = (RaiseError => 1, PrintError => 0);
	return DBI->connect("dbi:MariaDB:database=weigh;mariadb_socket=$address", 'root', '', \%options)
		if $kind eq 'mariadb';
	my ($directory) = $address =~ m{^(.*)/};
	return DBI->connect("dbi:Pg:dbname=postgres;host=$directory", 'bench', '', \%options);
}

sub work {
	my ($number, $ready, $go) = @_;
	my $database = connection();
	$database->do("DROP TABLE IF EXISTS keys$number");
	$database->do("CREATE TABLE keys$number (id INT PRIMARY KEY)");
	my $look_up = $database->prepare("SELECT id FROM keys$number WHERE id = ?");
	my $insert = $database->prepare("INSERT INTO keys$number VALUES (?)");
	syswrite $ready, '.';
	close $ready; # or the parent would wait for a client that has failed
	sysread $go, my $nothing, 1;
	for (1 .. $queries) {
		my $key = int rand 1 << 20;
		$look_up->execute($key);
		$insert->execute($key) unless @{$look_up->fetchall_arrayref};
	}
}

pipe my $are_ready, my $ready or die "pipe: $!\n";
pipe my $go, my $hold or die "pipe: $!\n";
for my $number (1 .. $clients) {
	my $child = fork // die "fork: $!\n";
	next if $child;
	close $hold;
	work($number, $ready, $go);
	exit 0;
}
close $ready;
my $count = 0;
$count++ while $count < $clients && sysread $are_ready, my $dot, 1;
my $begin = clock_gettime(CLOCK_MONOTONIC);
close $hold;
my $failed = 0;
while (wait > 0) { $failed ||= $? }
die "a client failed\n" if $failed;
my $elapsed_ns = int 1e9 * (clock_gettime(CLOCK_MONOTONIC) - $begin);
printf qq({"operations":%d,"elapsed_ns":%d,"unit":"queries/s"}\n), $clients * $queries, $elapsed_ns;

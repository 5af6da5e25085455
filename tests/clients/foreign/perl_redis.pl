# Debian's Perl client, with its defaults.
use strict;
use warnings;
use Digest::SHA qw(sha1_hex);
use Redis;
use Time::HiRes qw(time);

$| = 1;
my $address    = "127.0.0.1:$ENV{HEADGATE_PORT}";
my $every_byte = join '', map { chr } 0 .. 255;
my $failed     = 0;
my $redis      = Redis->new(server => $address);

sub step {
    my ($name, $run) = @_;
    if (eval { $run->(); 1 }) { print "ok $name\n"; return }
    my $why = "$@";
    $why =~ s/\n/ | /g;
    $failed = 1;
    print "not ok $name: $why\n";
}

sub same {
    my ($want, $got) = map { ref $_ ? join('|', map { $_ // 'undef' } @$_) : $_ // 'undef' } @_;
    die "want $want, got $got\n" if $want ne $got;
}

step connect => sub {
    same('PONG', $redis->ping);
    same('OK', $redis->set('pl:k', 'v', 'PX', 60000));
    same('v', $redis->get('pl:k'));
    same(undef, $redis->get('pl:absent'));
    eval { $redis->incr('pl:k'); 1 } and die "INCR of a word passed\n";
    $@ =~ /not an integer/ or die "another error: $@";
    same('standalone', $redis->info->{redis_mode});
};

step pipeline => sub {
    $redis->del('pl:n');
    my $last;
    $redis->incr('pl:n', sub { $last = $_[0] }) for 1 .. 1000;
    $redis->wait_all_responses;
    same(1000, $last);
};

step transaction => sub {
    my $now = int(time * 1000);
    $redis->multi;
    $redis->del('pl:w');
    $redis->zadd('pl:w', $now, 'a', $now + 1, 'b');
    $redis->zremrangebyscore('pl:w', 0, $now);
    $redis->zcard('pl:w');
    $redis->pexpire('pl:w', 1000);
    same([0, 2, 1, 1, 1], [$redis->exec]);
};

step watch => sub {
    $redis->watch('pl:watched');
    Redis->new(server => $address)->set('pl:watched', 'changed');
    $redis->multi;
    $redis->set('pl:watched', 'mine');
    same(undef, $redis->exec);
    same('changed', $redis->get('pl:watched'));
};

step script => sub {
    my $text = "return {KEYS[1], ARGV[1], tonumber(ARGV[2]) + 1} -- $$." . time;
    eval { $redis->evalsha(sha1_hex($text), 1, 'pl:k', 'x', 41); 1 } and die "EVALSHA of an unknown script passed\n";
    $@ =~ /NOSCRIPT No matching script/ or die "another error: $@";
    same(['pl:k', 'x', 42], [$redis->eval($text, 1, 'pl:k', 'x', 41)]);
    same(['pl:k', 'y', 2], [$redis->evalsha(sha1_hex($text), 1, 'pl:k', 'y', 1)]);
};

step pubsub => sub {
    my $subscriber = Redis->new(server => $address);
    my @heard;
    $subscriber->subscribe('pl:news', sub { push @heard, "$_[1]=$_[0]" });
    same(1, $redis->publish('pl:news', 'hello'));
    $subscriber->wait_for_messages(5) until @heard;
    same(['pl:news=hello'], \@heard);
    $subscriber->quit;
};

step blocking => sub {
    $redis->del('pl:q', 'pl:zq');
    my $child = fork // die "fork: $!";
    if (!$child) {
        select undef, undef, undef, 0.05;
        Redis->new(server => $address)->rpush('pl:q', 'job');
        exec '/bin/true';
    }
    same(['pl:q', 'job'], [$redis->blpop('pl:none', 'pl:q', 10)]);
    waitpid $child, 0;
    $redis->zadd('pl:zq', 1.5, 'member');
    same(['pl:zq', 'member', 1.5], [$redis->bzpopmin('pl:zq', 10)]);
};

step scan => sub {
    $redis->set("pl:scan:$_", $_, sub { }) for 1 .. 500;
    $redis->wait_all_responses;
    my %names;
    my $cursor = 0;
    do {
        ($cursor, my $found) = $redis->scan($cursor, 'MATCH', 'pl:scan:*', 'COUNT', 50);
        $names{$_} = 1 for @$found;
    } while $cursor;
    same(500, scalar keys %names);
};

step binary => sub {
    $redis->set('pl:bin', $every_byte);
    same($every_byte, $redis->get('pl:bin'));
    $redis->hset('pl:h', 'field', $every_byte);
    same($every_byte, $redis->hget('pl:h', 'field'));
};

step throttle => sub {
    $redis->del('pl:cell');
    same([0, 16, 15, -1, 2], [$redis->__std_cmd('CL.THROTTLE', 'pl:cell', 15, 30, 60)]);
};

exit $failed;

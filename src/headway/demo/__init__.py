"""`headway demo`: a small world on loopback, for people who want to see Headway before they use it.

    sites that push back        jobs (`jobs`, run by the server)  ◀── `traffic` enqueues them
    a provider with a limit     channels, online and batches      ◀── `models` calls them
    feeds, videos               the applications                  ◀── `feeds`, `videos` subscribe
    nobody                      slots                             ◀── `crowd` wants them
                                the gates of all of it            ◀── `operators` steer them

The server is `headway serve` in a process of its own, on a directory that goes when the demo does;
everything else is a client of its API, as programs of users are. All sites are on 127.0.0.1
(`town`), no name is looked up, and no setting of the environment reaches the server. What the sites
and their visitors do follows from a seed, as far as several processes and a clock allow.
"""

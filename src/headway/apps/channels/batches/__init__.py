"""Many calls at once, in OpenAI's shapes: files that come in, lines as jobs, files that go out."""

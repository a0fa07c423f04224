"""What the channels keep in the store."""

from __future__ import annotations

from headway.store.tables import Table

APP = "channels"

MIGRATIONS = (
    """
    create table llm_channels (
        code text primary key,
        model text not null,
        sealed_key text,
        settings text not null,
        source text not null,
        created_at double precision not null,
        updated_at double precision not null
    );
    create table llm_files (
        id text primary key,
        tenant text not null,
        filename text not null,
        purpose text not null,
        bytes bigint not null,
        created_at double precision not null,
        expires_at double precision
    );
    create index llm_files_of_tenant on llm_files (tenant, created_at);
    create table llm_file_parts (
        file text not null,
        part bigint not null,
        data text not null,
        primary key (file, part)
    );
    create table llm_batches (
        id text primary key,
        number bigint not null,
        tenant text not null,
        endpoint text not null,
        input_file text not null,
        completion_window text not null,
        status text not null,
        total bigint not null,
        planned bigint not null,
        output_file text,
        error_file text,
        errors text,
        metadata text,
        created_at double precision not null,
        expires_at double precision not null,
        times text not null
    );
    create index llm_batches_of_tenant on llm_batches (tenant, created_at);
    create table llm_answers (
        job bigint primary key,
        batch text,
        line bigint not null,
        custom_id text not null,
        status bigint not null,
        request_id text not null,
        body text not null,
        at double precision not null
    );
    create index llm_answers_of_batch on llm_answers (batch, line);
    create table llm_bills (
        id text primary key,
        at double precision not null,
        tenant text not null,
        channel text not null,
        model text not null,
        kind text not null,
        endpoint text not null,
        job bigint,
        batch text,
        input_tokens bigint not null,
        output_tokens bigint not null,
        estimated bigint not null,
        input_per_1k double precision not null,
        output_per_1k double precision not null,
        discount double precision not null,
        cost_nano bigint not null,
        currency text not null
    );
    create index llm_bills_by_time on llm_bills (at);
    create index llm_bills_of_tenant on llm_bills (tenant, at);
    create table llm_budgets (
        tenant text not null,
        period text not null,
        currency text not null,
        amount_nano bigint not null,
        updated_at double precision not null,
        primary key (tenant, period, currency)
    );
    """,
    """
    create table llm_callback_secrets (
        tenant text primary key,
        sealed text not null,
        sealed_before text,
        made_at double precision not null
    );
    """,
)

TEXT, WHOLE, REAL = "text", "bigint", "double"

CHANNELS = Table(
    "llm_channels",
    {
        "code": TEXT, "model": TEXT, "sealed_key": TEXT, "settings": TEXT, "source": TEXT,
        "created_at": REAL, "updated_at": REAL,
    },
    ("code",),
)  # fmt: skip
FILES = Table(
    "llm_files",
    {
        "id": TEXT, "tenant": TEXT, "filename": TEXT, "purpose": TEXT, "bytes": WHOLE,
        "created_at": REAL, "expires_at": REAL,
    },
    ("id",),
)  # fmt: skip
FILE_PARTS = Table("llm_file_parts", {"file": TEXT, "part": WHOLE, "data": TEXT}, ("file", "part"))
BATCHES = Table(
    "llm_batches",
    {
        "id": TEXT, "number": WHOLE, "tenant": TEXT, "endpoint": TEXT, "input_file": TEXT,
        "completion_window": TEXT, "status": TEXT, "total": WHOLE, "planned": WHOLE,
        "output_file": TEXT, "error_file": TEXT, "errors": TEXT, "metadata": TEXT,
        "created_at": REAL, "expires_at": REAL, "times": TEXT,
    },
    ("id",),
)  # fmt: skip
ANSWERS = Table(
    "llm_answers",
    {
        "job": WHOLE, "batch": TEXT, "line": WHOLE, "custom_id": TEXT, "status": WHOLE,
        "request_id": TEXT, "body": TEXT, "at": REAL,
    },
    ("job",),
)  # fmt: skip
BILLS = Table(
    "llm_bills",
    {
        "id": TEXT, "at": REAL, "tenant": TEXT, "channel": TEXT, "model": TEXT, "kind": TEXT,
        "endpoint": TEXT, "job": WHOLE, "batch": TEXT, "input_tokens": WHOLE,
        "output_tokens": WHOLE, "estimated": WHOLE, "input_per_1k": REAL, "output_per_1k": REAL,
        "discount": REAL, "cost_nano": WHOLE, "currency": TEXT,
    },
    ("id",),
)  # fmt: skip
BUDGETS = Table(
    "llm_budgets",
    {
        "tenant": TEXT, "period": TEXT, "currency": TEXT, "amount_nano": WHOLE, "updated_at": REAL,
    },
    ("tenant", "period", "currency"),
)  # fmt: skip
CALLBACK_SECRETS = Table(
    "llm_callback_secrets",
    {"tenant": TEXT, "sealed": TEXT, "sealed_before": TEXT, "made_at": REAL},
    ("tenant",),
)

PUT_CHANNEL, DROP_CHANNEL = CHANNELS.put(), CHANNELS.drop()
PUT_FILE, DROP_FILE = FILES.put(), FILES.drop()
PUT_PART = FILE_PARTS.put()
PUT_BATCH = BATCHES.put()
PUT_ANSWER = ANSWERS.put()
ADD_BILL = BILLS.add()
PUT_BUDGET, DROP_BUDGET = BUDGETS.put(), BUDGETS.drop()
ADD_CALLBACK_SECRET, PUT_CALLBACK_SECRET = CALLBACK_SECRETS.add(), CALLBACK_SECRETS.put()

select e.id, e.at, e.job, e.event, e.before, e.after, e.fence, e.detail, e.subject, e.who,
    j.type, j.lane, j.tenant, j.key
from events as e left join jobs as j on j.id = e.job

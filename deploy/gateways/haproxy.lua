-- The action lua.check of haproxy.cfg asks headgate's HTTP check, and sets txn.status and txn.retry_after.
core.register_action("check", { "http-req" }, function(txn)
    local answer = core.httpclient():get({
        url = "http://headgate/check?policy=user&key=" .. txn.f:src(),
        dst = "abns@headgate",
        timeout = 500,
    })
    txn:set_var("txn.status", answer and answer.status or 0)
    if answer and answer.status == 429 then
        local retry_after = answer.headers["retry-after"]
        txn:set_var("txn.retry_after", retry_after and retry_after[0] or "")
    end
end)

"""What Codex asks ChatGPT for beside answers, when it is logged in: of which workspace the account is, and models; and the renewal of a login's tokens.

answer(host, method, path, account) -> document, or None: nothing of it is here. account: what chatgpt-account-id said.
renew(host, method, path, directory, body) -> (status, document), or None. Files in directory that make a renewal: refresh, the token that is good for one; next.json, the
answer to it. Any other is refused.
"""
import json

MODELS = {"models": []}


def check(account):
    return {"accounts": [{"id": account, "workspace_backend_origin": "https://chatgpt.com", "account_routing_override": "NO_CONSTRAINT"}],
            "account_ordering": [account], "default_account_id": account}


def answer(host, method, path, account):
    if host != "chatgpt.com" or method != "GET":
        return None
    if path == "/backend-api/wham/accounts/check":
        return check(account)
    return MODELS if path == "/backend-api/codex/models" else None


def renew(host, method, path, directory, body):
    if (host, method, path) != ("auth.openai.com", "POST", "/oauth/token"):
        return None
    try:
        asked, good = json.loads(body), (directory / "refresh").read_text().strip()
        if (asked.get("grant_type"), asked.get("refresh_token")) == ("refresh_token", good):
            return 200, json.loads((directory / "next.json").read_text())
    except (OSError, ValueError, AttributeError):
        pass
    return 401, {"error": {"code": "refresh_token_expired", "message": "this is not a token that I know"}}

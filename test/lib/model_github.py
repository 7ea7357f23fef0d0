"""What GitHub's Copilot asks of GitHub before it asks a model: who the token belongs to, and which models there are."""
HOST = "api.individual.githubcopilot.com"
API = "https://" + HOST

USER = {"login": "octo", "id": 1, "copilot_plan": "individual", "access_type_sku": "free_educational", "assigned_date": "2026-01-01T00:00:00Z",
        "can_signup_for_limited": False, "chat_enabled": True, "cli_enabled": True, "cli_remote_control_enabled": False,
        "copilotignore_enabled": False, "is_mcp_enabled": True, "organization_list": [], "organization_login_list": [], "restricted_telemetry": True,
        "analytics_tracking_id": "0", "quota_snapshots": {}, "endpoints": {"api": API, "telemetry": API + "/telemetry", "proxy": API}}


def model(name, vendor, endpoints):
    return {"id": name, "name": name, "object": "model", "vendor": vendor, "version": name, "preview": False, "model_picker_enabled": True,
            "model_picker_category": "versatile", "policy": {"state": "enabled", "terms": ""}, "billing": {"is_premium": False, "multiplier": 1},
            "supported_endpoints": endpoints,
            "capabilities": {"family": name, "object": "model_capabilities", "tokenizer": "o200k_base", "type": "chat",
                             "limits": {"max_context_window_tokens": 200000, "max_output_tokens": 64000, "max_prompt_tokens": 128000},
                             "supports": {"parallel_tool_calls": True, "streaming": True, "tool_calls": True}}}


MODELS = [model("gpt-5-mini", "OpenAI", ["/chat/completions"]), model("gpt-5.4", "OpenAI", ["/chat/completions", "/responses"]),
          model("claude-sonnet-5", "Anthropic", ["/chat/completions", "/v1/messages"])]

ANSWERS = {
    ("api.github.com", "GET", "/copilot_internal/user"): USER,
    ("api.github.com", "GET", "/user"): {"login": "octo", "id": 1},
    (HOST, "GET", "/models"): {"object": "list", "data": MODELS},
}


def answer(host, method, path):
    """A document for a request, or None: not one of GitHub's."""
    return ANSWERS.get((host, method, path))

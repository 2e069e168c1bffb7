/** A way to use a key with a client. */
interface Snippet {
  client: string
  text: (baseUrl: string, key: string, model: string) => string
}

export const SNIPPETS: readonly Snippet[] = [
  {
    client: 'curl',
    text: (url, key, model) =>
      `curl ${url}/v1/chat/completions \\
  -H 'Authorization: Bearer ${key}' \\
  -H 'Content-Type: application/json' \\
  -d '{"model": "${model}", "messages": [{"role": "user", "content": "Hello"}]}'`,
  },
  {
    client: 'OpenAI',
    text: (url, key, model) =>
      `from openai import OpenAI

client = OpenAI(base_url="${url}/v1", api_key="${key}")
answer = client.chat.completions.create(
    model="${model}", messages=[{"role": "user", "content": "Hello"}]
)`,
  },
  {
    client: 'Anthropic',
    text: (url, key, model) =>
      `from anthropic import Anthropic

client = Anthropic(base_url="${url}", api_key="${key}")
answer = client.messages.create(
    model="${model}", max_tokens=100, messages=[{"role": "user", "content": "Hello"}]
)`,
  },
  {
    client: 'Claude Code',
    text: (url, key, model) =>
      `export ANTHROPIC_BASE_URL=${url}
export ANTHROPIC_AUTH_TOKEN=${key}
export ANTHROPIC_MODEL=${model}
claude`,
  },
  {
    client: 'Codex',
    text: (url, key, model) =>
      `# ~/.codex/config.toml
model = "${model}"
model_provider = "headgate"

[model_providers.headgate]
name = "Headgate"
base_url = "${url}/v1"
env_key = "HEADGATE_API_KEY"
wire_api = "responses"

# In the shell
export HEADGATE_API_KEY=${key}`,
  },
  {
    client: 'MCP',
    text: (url, key) =>
      JSON.stringify(
        {
          mcpServers: {
            headgate: { type: 'http', url: `${url}/v1/mcp`, headers: { Authorization: `Bearer ${key}` } },
          },
        },
        null,
        2,
      ),
  },
]

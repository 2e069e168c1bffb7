// Lists the tools of an MCP server and calls one, by the AI SDK.
import { createMCPClient } from '@ai-sdk/mcp'

const { url, tool, input } = JSON.parse(process.argv[2])
const headers = { authorization: `Bearer ${process.env.HEADGATE_KEY}` }
const client = await createMCPClient({ transport: { type: 'http', url, headers } })
const tools = await client.tools()
const result = await tools[tool].execute(input, { toolCallId: 'call_1', messages: [] })
await client.close()
console.log(JSON.stringify({ names: Object.keys(tools), result }))

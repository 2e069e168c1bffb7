// An MCP server on stdio with one tool, as a coding agent starts it. The wire: one JSON-RPC message in each line.
import { createInterface } from 'node:readline'

const READ_NOTE = {
  name: 'read_note',
  description: 'Reads a note.',
  inputSchema: { type: 'object', properties: { name: { type: 'string' } }, required: ['name'] },
  annotations: { readOnlyHint: true },
}
const METHODS = {
  initialize: ({ protocolVersion }) => ({
    protocolVersion,
    capabilities: { tools: {} },
    serverInfo: { name: 'notes', version: '1.0.0' },
  }),
  ping: () => ({}),
  'tools/list': () => ({ tools: [READ_NOTE] }),
  'tools/call': (call) => ({ content: [{ type: 'text', text: `This is note ${call.arguments.name}.` }] }),
}

for await (const line of createInterface({ input: process.stdin })) {
  const { id, method, params } = JSON.parse(line)
  if (id === undefined) continue
  const answer = METHODS[method]
  const told = answer
    ? { result: answer(params) }
    : { error: { code: -32601, message: `no method ${method}` } }
  process.stdout.write(`${JSON.stringify({ jsonrpc: '2.0', id, ...told })}\n`)
}

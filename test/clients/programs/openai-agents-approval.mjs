// A task with a tool of a hosted MCP server that needs an approval, by means of the OpenAI Agents SDK. Run by library-run.ts
// beside the packages.
import { Agent, hostedMcpTool, OpenAIProvider, Runner, tool } from '@openai/agents'
import OpenAI from 'openai'
import { z } from 'zod'

const {
  baseUrl,
  model,
  prompt,
  streamed,
  options = {},
  headers,
  server,
  approves,
  asks,
  before,
} = JSON.parse(process.argv[2])
const openAIClient = new OpenAI({
  baseURL: baseUrl,
  apiKey: process.env.HEADGATE_KEY,
  defaultHeaders: headers,
  maxRetries: 0,
})
const decision = { approve: approves, ...(!approves && { reason: 'Not today.' }) }
const readNote = tool({
  name: 'read_note',
  description: 'Reads a note.',
  parameters: z.object({ name: z.string() }),
  execute: async ({ name }) => ({ note: `This is note ${name}.` }),
})
const agent = new Agent({
  name: 'Clerk',
  instructions: 'Do what is asked for.',
  model,
  modelSettings: options,
  tools: [
    readNote,
    hostedMcpTool({
      serverLabel: server,
      requireApproval: 'always',
      ...(asks === 'callback' && { onApproval: async () => decision }),
    }),
  ],
})
const runner = new Runner({
  modelProvider: new OpenAIProvider({ openAIClient, useResponses: true }),
  tracingDisabled: true,
})

// A run that continues a conversation or a response sends new items only; otherwise it sends the whole history.
const how = {}
if (before) {
  const first = await run(before)
  if (before.id === 'conversation') {
    how.conversationId = (await openAIClient.responses.retrieve(first.lastResponseId)).conversation.id
  } else how.previousResponseId = first.lastResponseId
}
let result = await run({ prompt }, how)
let interruptions = 0
while (result.interruptions.length > 0) {
  for (const each of result.interruptions) {
    interruptions++
    if (approves) result.state.approve(each)
    else result.state.reject(each, { message: decision.reason })
  }
  result = await run({ prompt: result.state }, how)
}
console.log(JSON.stringify({ text: result.finalOutput, interruptions }))

async function run({ prompt }, how = {}) {
  if (!streamed) return runner.run(agent, prompt, { ...how, maxTurns: 6 })
  const stream = await runner.run(agent, prompt, { ...how, maxTurns: 6, stream: true })
  for await (const _event of stream);
  await stream.completed
  return stream
}

// A task with tools by means of the OpenAI Agents SDK. Run by library-run.ts beside the packages.
import { Agent, OpenAIProvider, Runner, tool } from '@openai/agents'
import OpenAI from 'openai'
import * as z from 'zod'

const { baseUrl, model, prompt, streamed, options = {}, headers, continuation } = JSON.parse(process.argv[2])
const openAIClient = new OpenAI({
  baseURL: baseUrl,
  apiKey: process.env.HEADGATE_KEY,
  defaultHeaders: headers,
  maxRetries: 0,
})
const agent = new Agent({
  name: 'Reader',
  instructions: 'Read what is asked for.',
  model,
  modelSettings: options,
  tools: [
    tool({
      name: 'read_note',
      description: 'Reads a note.',
      parameters: z.object({ name: z.string() }),
      execute: async ({ name }) => ({ note: `This is note ${name}.` }),
    }),
  ],
})
const runner = new Runner({
  modelProvider: new OpenAIProvider({ openAIClient, useResponses: true }),
  tracingDisabled: true,
})

let result = await run(prompt)
if (continuation) result = await run(continuation, { previousResponseId: result.lastResponseId })
const responses = result.rawResponses
const sum = (member) => responses.reduce((total, { usage }) => total + usage[member], 0)
const parts = responses.flatMap(({ output }) => output.flatMap((item) => item.content ?? []))
const text = parts.map((part) => (part.type === 'output_text' ? part.text : '')).join('')
const usage = { input: sum('inputTokens'), output: sum('outputTokens') }
console.log(JSON.stringify({ text, steps: responses.length, usage }))

async function run(input, how = {}) {
  if (!streamed) return runner.run(agent, input, how)
  const stream = await runner.run(agent, input, { ...how, stream: true })
  for await (const _event of stream);
  await stream.completed
  return stream
}

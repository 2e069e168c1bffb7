// A task with tools by means of the Vercel AI SDK. Run by library-run.ts beside the packages.
import { createOpenAI } from '@ai-sdk/openai'
import { generateText, isStepCount, streamText, tool } from 'ai'
import * as z from 'zod'

const { baseUrl, model, prompt, streamed, options = {}, headers } = JSON.parse(process.argv[2])
const openai = createOpenAI({ baseURL: baseUrl, apiKey: process.env.HEADGATE_KEY, headers })
const task = {
  model: openai.responses(model),
  prompt,
  tools: {
    read_note: tool({
      description: 'Reads a note.',
      inputSchema: z.object({ name: z.string() }),
      execute: async ({ name }) => ({ note: `This is note ${name}.` }),
    }),
  },
  stopWhen: isStepCount(5),
  ...options,
}

const result = streamed ? await streamedResult() : await generateText(task)
const { inputTokens: input, outputTokens: output } = await result.totalUsage
const steps = await result.steps
const text = steps.map((step) => step.text).join('')
console.log(JSON.stringify({ text, steps: steps.length, usage: { input, output } }))

async function streamedResult() {
  const stream = streamText({ ...task, onError: ({ error }) => Promise.reject(error) })
  for await (const part of stream.fullStream) if (part.type === 'error') throw part.error
  return stream
}

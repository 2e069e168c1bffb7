// A task with tools by means of LangChain. Run by library-run.ts beside the packages.
import { HumanMessage } from '@langchain/core/messages'
import { tool } from '@langchain/core/tools'
import { ChatOpenAI } from '@langchain/openai'
import * as z from 'zod'

const { baseUrl, model, prompt, streamed, options = {}, headers } = JSON.parse(process.argv[2])
const readNote = tool(async ({ name }) => JSON.stringify({ note: `This is note ${name}.` }), {
  name: 'read_note',
  description: 'Reads a note.',
  schema: z.object({ name: z.string() }),
})
const { callOptions, ...fields } = options
const chat = new ChatOpenAI({
  model,
  apiKey: process.env.HEADGATE_KEY,
  useResponsesApi: true,
  configuration: { baseURL: baseUrl, defaultHeaders: headers },
  ...fields,
}).bindTools([readNote], callOptions)

const messages = [new HumanMessage(prompt)]
const answers = []
for (let calls = 1; calls > 0; ) {
  const answer = streamed ? await streamedAnswer() : await chat.invoke(messages)
  answers.push(answer)
  messages.push(answer)
  calls = answer.tool_calls.length
  for (const call of answer.tool_calls) messages.push(await readNote.invoke(call))
}
const sum = (member) => answers.reduce((total, { usage_metadata: usage }) => total + usage[member], 0)
const text = answers.map((answer) => answer.text).join('')
const usage = { input: sum('input_tokens'), output: sum('output_tokens') }
console.log(JSON.stringify({ text, steps: answers.length, usage }))

async function streamedAnswer() {
  let whole = null
  for await (const chunk of await chat.stream(messages)) whole = whole === null ? chunk : whole.concat(chunk)
  return whole
}

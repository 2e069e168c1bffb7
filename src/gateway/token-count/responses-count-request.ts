import { type Json, listOf, objectOf, present, textOf } from '../protocols/json.ts'
import { conversationOfMessages, systemMessage } from '../translation/requests/messages-conversation.ts'
import { chatParallelCalls, chatToolChoice, chatTools } from '../translation/requests/messages-tools.ts'
import { responseFormatOfMessages } from '../translation/requests/output-format.ts'

/**
 * A messages request as the body of OpenAI's own counter, `POST /responses/input_tokens`
 * (https://platform.openai.com/docs/api-reference/responses/input-tokens). It has the contents that the call would
 * send: the conversation is translated to chat completions, and its messages become items.
 *
 * @param request a parsed messages request that was checked before
 * @param upstreamModel the model's id at its provider
 * @throws ApiError invalid_request naming what has no equivalent in chat completions, as for the call itself
 */
export function responsesCountRequest(request: Json, upstreamModel: string): Json {
  const tools = chatTools(request)?.map(functionTool)
  return present({
    model: upstreamModel,
    instructions: systemMessage(request.system, null)[0]?.content,
    input: conversationOfMessages(answerable(request.messages)).flatMap(itemsOf),
    tools,
    tool_choice: tools && toolChoice(request),
    parallel_tool_calls: tools && chatParallelCalls(request),
    text: textFormat(request),
  })
}

/** A conversation that ends with the assistant can be counted, though the call would be refused. */
function answerable(messages: unknown): Json[] {
  const turns = listOf(messages)
  return turns[turns.length - 1]?.role === 'assistant' ? [...turns, { role: 'user', content: [] }] : turns
}

function itemsOf(message: Json): Json[] {
  if (message.role === 'tool') {
    return [{ type: 'function_call_output', call_id: message.tool_call_id, output: message.content }]
  }
  const calls = listOf(message.tool_calls).map((call) => ({
    type: 'function_call',
    call_id: call.id,
    name: textOf(objectOf(call.function).name),
    arguments: textOf(objectOf(call.function).arguments),
  }))
  const content = contentOf(message.content)
  return [...(content === undefined ? [] : [{ type: 'message', role: message.role, content }]), ...calls]
}

function contentOf(content: unknown): unknown {
  return Array.isArray(content) ? listOf(content).map(inputPart) : (content ?? undefined)
}

function inputPart(part: Json): Json {
  if (part.type === 'image_url') {
    return { type: 'input_image', image_url: objectOf(part.image_url).url, detail: 'auto' }
  }
  if (part.type === 'file') return { type: 'input_file', ...objectOf(part.file) }
  return { type: 'input_text', text: part.text }
}

function functionTool(tool: Json): Json {
  const made = objectOf(tool.function)
  // Tools are strict by default in the responses protocol, not in chat completions.
  return { ...made, type: 'function', strict: made.strict === true }
}

function toolChoice(request: Json): unknown {
  const choice = chatToolChoice(request)
  if (typeof choice !== 'object') return choice
  return { type: 'function', name: objectOf(choice.function).name }
}

function textFormat(request: Json): Json | undefined {
  const format = responseFormatOfMessages(request)
  return format && { format: { type: 'json_schema', ...objectOf(format.json_schema) } }
}

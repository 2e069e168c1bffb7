import { isRecord, type JsonRecord, toList, toRecord, toText } from '../json-value.ts'
import { missingFault, nameFault, typeFault, valueFault } from './chat-messages.ts'
import { type Fault, firstFault } from './fault.ts'
import { parametersFault, strictSchemaFault } from './schema-rules.ts'

/**
 * Faults for which OpenAI refuses tools or a tool choice.
 * https://platform.openai.com/docs/api-reference/chat/create#chat_create-tools
 */
export function findChatToolsFault(body: JsonRecord): Fault | undefined {
  const { tools } = body
  if (tools !== undefined && tools !== null && !Array.isArray(tools)) {
    return typeFault('tools', 'an array of objects', tools)
  }
  if (Array.isArray(tools) && tools.length === 0) {
    return {
      message:
        "Invalid 'tools': empty array. Expected an array with minimum length 1, but got an empty array instead.",
      param: 'tools',
      code: 'empty_array',
    }
  }
  const records = toList(tools).map(toRecord)
  return (
    firstFault(records, (tool, index) => toolFault(tool, `tools[${index}]`)) ?? choiceFault(body, records)
  )
}

function toolFault(tool: JsonRecord, param: string): Fault | undefined {
  const type = toText(tool.type)
  if (tool.type === undefined) return missingFault(`${param}.type`)
  if (type !== 'function' && type !== 'custom') {
    return valueFault(tool.type, ['function', 'custom'], `${param}.type`)
  }
  if (!isRecord(tool[type])) return missingFault(`${param}.${type}`)
  const made = toRecord(tool[type])
  return nameFault(made.name, `${param}.${type}.name`) ?? schemaFault(made, `${param}.function`)
}

function schemaFault({ name, parameters, strict }: JsonRecord, param: string): Fault | undefined {
  if (parameters !== undefined && parameters !== null && !isRecord(parameters)) {
    return typeFault(`${param}.parameters`, 'an object', parameters)
  }
  const fault = parametersFault(parameters) ?? (strict === true ? strictSchemaFault(parameters) : undefined)
  if (fault === undefined) return undefined
  return {
    message: `Invalid schema for function '${toText(name)}': ${fault}`,
    param: `${param}.parameters`,
    code: 'invalid_function_parameters',
  }
}

const nameOf = (tool: JsonRecord): string => toText(toRecord(tool.function ?? tool.custom).name)

function choiceFault(body: JsonRecord, tools: JsonRecord[]): Fault | undefined {
  for (const member of ['tool_choice', 'parallel_tool_calls']) {
    if (body[member] === undefined || body[member] === null || tools.length > 0) continue
    return {
      message: `Invalid value for '${member}': '${member}' is only allowed when 'tools' are specified.`,
      param: member,
    }
  }
  const { tool_choice: choice } = body
  if (choice === undefined || choice === null) return undefined
  if (typeof choice === 'string') {
    const words = ['none', 'auto', 'required']
    return words.includes(choice) ? undefined : valueFault(choice, words, 'tool_choice')
  }
  const { type, allowed_tools: allowed } = toRecord(choice)
  if (type === 'allowed_tools') {
    const modes = ['auto', 'required']
    const { mode, tools: named } = toRecord(allowed)
    if (!modes.includes(toText(mode))) return valueFault(mode, modes, 'tool_choice.allowed_tools.mode')
    return firstFault(toList(named).map(toRecord), (tool) => unknownToolFault(nameOf(tool), tools))
  }
  if (type !== 'function' && type !== 'custom') {
    return valueFault(type, ['function', 'allowed_tools', 'custom'], 'tool_choice.type')
  }
  if (!isRecord(toRecord(choice)[type])) return missingFault(`tool_choice.${type}`)
  return unknownToolFault(nameOf(toRecord(choice)), tools)
}

function unknownToolFault(name: string, tools: JsonRecord[]): Fault | undefined {
  if (tools.some((tool) => nameOf(tool) === name)) return undefined
  return {
    message: `Invalid value: Tool choice '${name}' not found in 'tools' parameter.`,
    param: 'tool_choice',
  }
}

/**
 * A text without the last characters, as long as these are one character. A pattern such as `/+$` would begin anew at each
 * such character in the text, wherever it is.
 */
export function withoutTrailing(text: string, character: string): string {
  let end = text.length
  while (end > 0 && text[end - 1] === character) end--
  return text.slice(0, end)
}

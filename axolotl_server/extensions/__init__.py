"""Extensions that come with the server: tasks, skills and the console. Nothing outside of this folder imports them."""
